import { isObject } from '../../api/json.ts';
import { AgentConfigError } from '../settings/config-fields.ts';

/** Where the application's own metrics are. */
export interface ScrapeTarget {
  readonly port: number;
  readonly path: string;
}

/** Of Istio's agent, which must not be scraped from here: that would never end. */
const RESERVED: readonly number[] = [15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090];

/** More of them than a Pod has containers would be a mistake, and each is a request. */
const MOST = 20;

const NAME = 'ISTIO_PROMETHEUS_ANNOTATIONS';

/**
 * The value of `ISTIO_PROMETHEUS_ANNOTATIONS`: JSON. Empty: the application has none. Throws {@link AgentConfigError}.
 * @param own ports of this agent and its Envoy.
 */
export function readScrapeTargets(text: string, own: readonly number[] = []): readonly ScrapeTarget[] {
  if (text.trim() === '') return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Below.
  }
  if (!isObject(value)) throw new AgentConfigError(`${NAME} must be a JSON object`);
  if (value['scrape'] !== 'true' && value['scrape'] !== true) return [];
  const several = Array.isArray(value['targets']) ? value['targets'] : [];
  if (several.length > MOST) throw new AgentConfigError(`${NAME} has more than ${MOST} targets`);
  return (several.length > 0 ? several.filter(isObject) : [value]).flatMap((each) => {
    const port = Number(each['port'] ?? '') || 80;
    if (port > 65_535 || [...RESERVED, ...own].includes(port)) return [];
    const path = typeof each['path'] === 'string' && each['path'] !== '' ? each['path'] : '/metrics';
    return [{ port, path: path.startsWith('/') ? path : `/${path}` }];
  });
}
