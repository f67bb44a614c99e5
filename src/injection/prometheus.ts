import { isObject, type Json } from '../api/json.ts';
import { parseJson } from '../api/annotation-json.ts';
import { PROXY, annotationsOf, mapContainers, nameOf, withAnnotations, withEnvironment, withMetadata } from './pod.ts';

/** Where the agent reads what to scrape of the application. */
export const SCRAPING = 'ISTIO_PROMETHEUS_ANNOTATIONS';

const names = { scrape: 'prometheus.io/scrape', path: 'prometheus.io/path', port: 'prometheus.io/port' } as const;
const TARGETS = 'prometheus.istio.io/scrape-targets';

/** The Pod with annotations that lead to the agent, which answers with the application's metrics and the proxy's. */
export function mergeMetrics(pod: Json, statusPort: number): Json {
  const annotations = annotationsOf(pod);
  if (annotations[names.scrape] === 'false') return pod;
  const { [names.scrape]: scrape, [names.path]: path, [names.port]: port, [TARGETS]: targets } = annotations;
  const own = Object.fromEntries(
    Object.entries({ scrape, path, port, targets }).filter(([, text]) => text !== undefined),
  );
  const redirected = withAnnotations(pod, {
    [names.scrape]: 'true',
    [names.port]: String(statusPort),
    [names.path]: '/stats/prometheus',
  });
  if (Object.keys(own).length === 0) return redirected;
  return mapContainers(redirected, (container) =>
    nameOf(container) === PROXY
      ? withEnvironment(container, [{ name: SCRAPING, value: JSON.stringify(own) }])
      : container,
  );
}

/** The Pod as it was before. `own`: the value of the agent's variable, if it has one. */
export function restoreMetrics(pod: Json, own: string | undefined): Json {
  const annotations = { ...annotationsOf(pod) };
  if (annotations[names.path] !== '/stats/prometheus') return pod;
  const before = scrapingIn(own);
  for (const [member, name] of Object.entries(names)) {
    const text = before[member];
    if (typeof text === 'string') annotations[name] = text;
    else delete annotations[name];
  }
  return withMetadata(pod, { annotations });
}

function scrapingIn(own: string | undefined): Json {
  const value = parseJson(own ?? '');
  return isObject(value) ? value : {};
}
