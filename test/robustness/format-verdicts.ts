import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEnvoy } from '../peers/envoy.ts';
import { poll } from '../peers/process.ts';

/** Where a format stands: the value of a header, or the format of a log. */
export type FormatPlace = 'header' | 'log';

/**
 * What a real Envoy says to each format, in their order; empty where it takes it. Each is the only one of a listener, and
 * Envoy judges every listener of a file for itself.
 */
export async function formatVerdicts(formats: readonly string[], place: FormatPlace): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-formats-'));
  try {
    const path = join(directory, 'listeners.json');
    await writeFile(path, JSON.stringify({ resources: formats.map((format, i) => listenerWith(format, place, i)) }));
    const envoy = await startEnvoy({
      adsPort: 1,
      delta: true,
      node: { id: 'formats' },
      extraBootstrap: { dynamicResources: { ldsConfig: { pathConfigSource: { path }, resourceApiVersion: 'V3' } } },
    });
    try {
      await poll('Envoy has judged', async () => {
        const judged = await envoy.stats('^listener_manager.lds.update_(success|rejected)$');
        return Object.values(judged).some((count) => count > 0) || undefined;
      });
      const { listeners } = await envoy.configDump();
      const verdicts = new Map(listeners.map(({ name, error = '' }) => [name, error]));
      return formats.map((_, i) => verdicts.get(`format-${i}`) ?? 'not judged');
    } finally {
      await envoy.stop();
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const manager = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const router = 'envoy.extensions.filters.http.router.v3.Router';
const fileLog = 'envoy.extensions.access_loggers.file.v3.FileAccessLog';
const withoutQuery = 'envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery';

function listenerWith(format: string, place: FormatPlace, index: number): object {
  const logFormat = {
    textFormatSource: { inlineString: format },
    formatters: [{ name: 'envoy.formatter.req_without_query', typedConfig: any(withoutQuery, {}) }],
  };
  const route = { match: { prefix: '/' }, directResponse: { status: 200 } };
  const host = { name: 'any', domains: ['*'], routes: [route] };
  const virtualHost =
    place === 'header' ? { ...host, requestHeadersToAdd: [{ header: { key: 'x-a', value: format } }] } : host;
  const typedConfig = any(manager, {
    statPrefix: 'formats',
    httpFilters: [{ name: 'router', typedConfig: any(router, {}) }],
    routeConfig: { name: 'routes', virtualHosts: [virtualHost] },
    ...(place === 'log'
      ? { accessLog: [{ name: 'log', typedConfig: any(fileLog, { path: '/dev/null', logFormat }) }] }
      : {}),
  });
  return {
    '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
    name: `format-${index}`,
    address: { socketAddress: { address: '127.0.0.1', portValue: index + 1 } },
    bindToPort: false,
    filterChains: [{ filters: [{ name: 'manager', typedConfig }] }],
  };
}

function any(type: string, value: object): object {
  return { '@type': `type.googleapis.com/${type}`, ...value };
}
