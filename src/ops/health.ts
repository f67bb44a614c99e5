import type { Route } from './http-server.ts';

/** What this replica still waits for before it may serve; empty once it may. */
export type Readiness = () => readonly string[];

/**
 * `/ready`: whether proxies may be routed here. Once ready, trouble with the API server or the signing certificates does
 * not matter: all replicas would become unready at once. `/healthz`: whether the process is alive, as any response shows.
 */
export function healthRoutes(waitingFor: Readiness): [string, Route][] {
  return [
    [
      '/ready',
      () => {
        const missing = waitingFor();
        if (missing.length === 0) return { type: 'text/plain', body: 'ready\n' };
        return { status: 503, type: 'text/plain', body: `not ready, waiting for ${missing.join(', ')}\n` };
      },
    ],
    ['/healthz', () => ({ type: 'text/plain', body: 'ok\n' })],
  ];
}
