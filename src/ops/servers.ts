import type { Address } from '../config/settings.ts';
import { type DebugSources, debugRoutes } from './debug/pages.ts';
import { logLevelRoutes } from './debug/log-level.ts';
import { healthRoutes, type Readiness } from './health.ts';
import { type HttpServer, type HttpServerOptions, type Route, serveHttp } from './http-server.ts';
import type { LevelledLogger } from './logger.ts';

export interface OpsOptions {
  readonly healthAddress: Address;
  readonly monitoringAddress: Address;
  readonly waitingFor: Readiness;
  readonly debug: DebugSources;
  /** `/metrics` */
  readonly metrics: Route;
  readonly version: string;
  /** Its level can be set. */
  readonly logger: Pick<LevelledLogger, 'level'>;
  readonly log: HttpServerOptions['log'];
  readonly signal: AbortSignal;
}

export interface OpsServers {
  readonly health: HttpServer;
  readonly monitoring: HttpServer;
}

/** Both servers for operators rather than proxies. Rejects with a ListenError. */
export async function serveOps(options: OpsOptions): Promise<OpsServers> {
  const { healthAddress, monitoringAddress, waitingFor, debug, metrics, version, logger, log, signal } = options;
  const logLevel = logLevelRoutes(logger);
  const pages: [string, Route][] = [...debugRoutes(debug), ['/debug/loglevel', logLevel.show]];
  const actions = new Map([['/debug/loglevel', logLevel.set]]);
  const health = await serveHttp({
    name: 'health',
    address: healthAddress,
    routes: new Map([...healthRoutes(waitingFor), ...pages]),
    actions,
    log,
    signal,
  });
  const monitoring = await serveHttp({
    name: 'monitoring',
    address: monitoringAddress,
    routes: new Map([
      ['/metrics', metrics],
      // istioctl prints it as it is.
      ['/version', () => ({ type: 'text/plain', body: version })],
      ...pages,
    ]),
    actions,
    log,
    signal,
  });
  return { health, monitoring };
}
