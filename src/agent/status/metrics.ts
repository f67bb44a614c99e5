import { type IncomingMessage, type ServerResponse, request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { isObject } from '../../api/json.ts';
import { AgentConfigError } from '../proxy-config.ts';

/** Where the application's own metrics are. */
export interface ScrapeTarget {
  readonly port: number;
  readonly path: string;
}

/** Of Istio's agent, which must not be scraped from here: that would never end. */
const RESERVED: readonly number[] = [15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090];

/** The value of `ISTIO_PROMETHEUS_ANNOTATIONS`: JSON. Undefined: the application has none. */
export function readScrapeTarget(text: string): ScrapeTarget | undefined {
  if (text.trim() === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Below.
  }
  if (!isObject(value)) throw new AgentConfigError('ISTIO_PROMETHEUS_ANNOTATIONS must be a JSON object');
  if (value['scrape'] !== 'true' && value['scrape'] !== true) return undefined;
  const port = Number(value['port'] ?? '') || 80;
  if (port > 65_535 || RESERVED.includes(port)) return undefined;
  const path = typeof value['path'] === 'string' && value['path'] !== '' ? value['path'] : '/metrics';
  return { port, path: path.startsWith('/') ? path : `/${path}` };
}

export interface MetricsSources {
  /** Of the agent itself, in the text format. */
  readonly own: () => string;
  readonly envoy: { readonly host: string; readonly port: number };
  readonly app: (ScrapeTarget & { readonly host: string; readonly from: string | undefined }) | undefined;
  /** Counts a source that did not answer. */
  readonly failed: (source: 'envoy' | 'app') => void;
}

/** Milliseconds. Scrapers themselves wait for ten seconds. */
const TIMEOUT = 8_000;

const TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** Writes the metrics of the agent, of Envoy and of the application, in this order. Nothing is kept in memory. */
export async function writeMetrics(
  sources: MetricsSources,
  query: string,
  from: IncomingMessage,
  to: ServerResponse,
): Promise<void> {
  const { own, envoy, app, failed } = sources;
  const accept = from.headers.accept ?? '*/*';
  const [ofEnvoy, ofApp] = await Promise.all([
    open({ ...envoy, path: `/stats/prometheus${query}` }).catch(() => undefined),
    app &&
      open({
        host: app.host,
        port: app.port,
        path: app.path,
        // OpenMetrics may end with an EOF mark: it comes last.
        headers: { accept },
        ...(app.from !== undefined && { localAddress: app.from }),
      }).catch(() => undefined),
  ]);
  if (ofEnvoy === undefined) failed('envoy');
  if (app !== undefined && ofApp === undefined) failed('app');
  to.writeHead(200, { 'content-type': ofApp?.headers['content-type'] ?? TEXT });
  to.write(own());
  for (const [name, source] of [
    ['envoy', ofEnvoy],
    ['app', ofApp],
  ] as const)
    if (source !== undefined)
      await pipeline(source, to, { end: false }).catch(() => {
        failed(name);
        to.destroy();
      });
  to.end();
}

function open(options: {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly localAddress?: string;
}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, agent: false, timeout: TIMEOUT }, (response) => {
      if (response.statusCode === 200) return resolve(response);
      response.destroy();
      reject(new Error(`${options.path}: ${response.statusCode}`));
    });
    sent.on('timeout', () => sent.destroy(new Error(`${options.path}: no answer`)));
    sent.on('error', reject);
    sent.end();
  });
}
