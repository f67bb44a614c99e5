import { destinationRule, serviceEntry, virtualService } from '../features/objects.ts';
import { DEADLY_SECONDS, type Poison } from './poisons.ts';
import type { Backend } from './traffic.ts';

export const INNOCENT = 'innocent.example.com';

/** What owners write before, with and after a poison, and where it is served. */
export function sceneOf(
  { name, type }: Poison,
  { ownPort, web, backend }: { ownPort: number; web: number; backend: Backend },
) {
  const isTcp = type === 'listener';
  const port = isTcp ? ownPort : web;
  const host = `${name}.example.com`;
  const entry = (withHost: string, weight = 1) =>
    entryFor(withHost, port, backend, name, isTcp ? 'TCP' : 'HTTP', weight);
  const route = { destination: { host } };
  switch (type) {
    case 'cluster': {
      const rule = (connectTimeout: string) =>
        destinationRule(name, { host, trafficPolicy: { connectionPool: { tcp: { connectTimeout } } } });
      return {
        port,
        host,
        before: [entry(host)],
        good: rule('7s'),
        bad: rule(`${DEADLY_SECONDS}s`),
        mended: rule('8s'),
      };
    }
    case 'listener':
      return { port, host, before: [], good: entry(host), bad: entry(`poison-${host}`), mended: entry(host, 2) };
    case 'virtualHost': {
      const hosts = (more: readonly string[], label: string) =>
        virtualService(name, { hosts: [host, ...more], http: [{ name: label, route: [route] }] });
      return {
        port,
        host,
        before: [entry(host)],
        good: hosts([], 'good'),
        bad: hosts([`poison-${host}`], 'good'),
        mended: hosts([], 'better'),
      };
    }
    case 'routeEntry': {
      const routes = (label: string) =>
        virtualService(name, { hosts: [host], http: [{ name: label, route: [route] }] });
      return {
        port,
        host,
        before: [entry(host)],
        good: routes('good'),
        bad: routes(`poison-${name}.example`),
        mended: routes('better'),
      };
    }
  }
}

export function entryFor(
  host: string,
  port: number,
  backend: Backend,
  name = host.split('.')[0]!,
  protocol = 'HTTP',
  weight = 1,
) {
  return serviceEntry(name, {
    hosts: [host],
    resolution: 'STATIC',
    location: 'MESH_INTERNAL',
    ports: [{ number: port, name: protocol.toLowerCase(), protocol }],
    endpoints: [{ address: '127.0.0.1', ports: { [protocol.toLowerCase()]: backend.port }, weight }],
  });
}

/** Its answer says which turn it is. */
export function innocent(turn: number) {
  return virtualService('innocent', {
    hosts: [INNOCENT],
    http: [{ name: 'turn', directResponse: { status: 200, body: { string: `turn ${turn}` } } }],
  });
}
