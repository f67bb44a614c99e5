import { isIP } from 'node:net';
import type { KubernetesObject } from '../api/object.ts';
import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { Answer, Route } from './http-server.ts';
import { jsonAnswer, jsonArrayAnswer } from './json-answer.ts';

/** What the debug pages show; called when a page is requested. */
export interface DebugSources {
  /** Proxies that have identified themselves. */
  readonly proxies: () => Iterable<ProxyState>;
  /** All known objects, of all kinds. */
  readonly objects: () => Iterable<KubernetesObject>;
  readonly problems: () => Iterable<Problem>;
  /** Location of an object that came from a file: `file:line`. */
  readonly locate?: (problem: Problem) => string | undefined;
}

/** A connected proxy, and how far it has come with each type. */
export interface ProxyState {
  readonly stream: string;
  readonly nodeId: string;
  /** For example `envoy 1.40.0`; may be empty. */
  readonly build: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality: { readonly region: string; readonly zone: string; readonly subZone: string };
  readonly types: readonly ProxyTypeState[];
}

export interface ProxyTypeState {
  readonly typeUrl: string;
  /** cds, eds, lds, rds */
  readonly shortName: string;
  readonly wildcard: boolean;
  /** Number of names that it asked for. */
  readonly names: number;
  /** Nonces; empty before the first. */
  readonly sent: string;
  readonly acked: string;
  /** Everything due to it was sent and acknowledged. */
  readonly synced: boolean;
  /** Resources whose current version it rejected. */
  readonly refused: readonly string[];
  /** Names in a response that has been unanswered for long. */
  readonly overdue: readonly string[];
}

/** `/debug/...`, with the names and formats of Istio's pages where these exist. */
export function debugRoutes(sources: DebugSources): [string, Route][] {
  const { proxies, objects, problems, locate } = sources;
  const pages: Record<string, { readonly help: string; readonly route: Route }> = {
    syncz: {
      help: 'what each proxy was sent and has acknowledged; filter by proxyID=',
      route: ({ query }) => jsonArrayAnswer(map(asked(proxies(), query), syncState)),
    },
    adsz: {
      help: 'connected proxies with their metadata; filter by proxyID=',
      route: ({ query }) => clients(asked(proxies(), query), client),
    },
    connections: { help: 'connected proxies', route: ({ query }) => clients(asked(proxies(), query), lightClient) },
    configz: {
      help: 'all known objects; filter by kind=, namespace= and name=',
      route: ({ query }) => jsonArrayAnswer(filter(objects(), (object) => isAsked(object, query))),
    },
    problems: {
      help: 'what is wrong with objects',
      route: () =>
        jsonArrayAnswer(
          map(problems(), (problem) => ({
            object: printRef(problem.object),
            place: locate?.(problem),
            field: problem.field,
            reason: problem.reason,
            message: problem.message,
          })),
        ),
    },
  };
  const index: Route = () =>
    jsonAnswer(Object.entries(pages).map(([name, { help }]) => ({ path: `/debug/${name}`, help })));
  return [
    ['/debug', loopbackOnly(index)],
    ...Object.entries(pages).map(([name, { route }]): [string, Route] => [`/debug/${name}`, loopbackOnly(route)]),
  ];
}

/**
 * Not everybody who can reach the port may see config and workload addresses, so requests must come from this machine.
 * `kubectl port-forward` does, but so does a browser, in which any page may point its own name at this address: only
 * `localhost` and IP addresses are accepted as the host.
 */
function loopbackOnly(route: Route): Route {
  return (request) => {
    if (!isLoopback(request.remoteAddress))
      return refusal(401, 'debug pages are served to this machine only; use kubectl port-forward');
    if (!namesThisMachine(request.host))
      return refusal(403, 'debug pages are served only under localhost or an IP address');
    return route(request);
  };
}

function refusal(status: number, text: string): Answer {
  return { status, type: 'text/plain', body: `${text}\n` };
}

/** The header may be absent: only browsers are sure to send it. */
function namesThisMachine(host: string): boolean {
  const [, v6, name = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  if (v6 !== undefined) return isIP(v6) === 6;
  return host === '' || isIP(name) === 4 || /^localhost\.?$/i.test(name);
}

function isLoopback(address: string): boolean {
  const v4 = address.replace(/^::ffff:/, '');
  return v4 === '::1' || /^127\.\d+\.\d+\.\d+$/.test(v4);
}

function isAsked({ kind, metadata }: KubernetesObject, query: URLSearchParams): boolean {
  const fits = (name: string, value: string): boolean => (query.get(name) ?? value) === value;
  return fits('kind', kind) && fits('namespace', metadata.namespace ?? '') && fits('name', metadata.name);
}

/** The proxies requested, as Istio's tools do: by `pod.namespace`, or by the whole id. */
function asked(proxies: Iterable<ProxyState>, query: URLSearchParams): Iterable<ProxyState> {
  const id = query.get('proxyID');
  return id === null ? proxies : filter(proxies, (proxy) => id === workloadOf(proxy) || id === proxy.nodeId);
}

const istioNames: Readonly<Record<string, string>> = { cds: 'cluster', lds: 'listener', rds: 'route', eds: 'endpoint' };

function syncState(proxy: ProxyState): object {
  const nonces: Record<string, string> = {};
  for (const { shortName, sent, acked } of proxy.types) {
    const name = istioNames[shortName] ?? shortName;
    nonces[`${name}_sent`] = sent;
    nonces[`${name}_acked`] = acked;
  }
  return {
    cluster_id: proxy.metadata['CLUSTER_ID'],
    proxy: workloadOf(proxy),
    proxy_type: typeOf(proxy),
    proxy_version: proxy.build,
    istio_version: proxy.metadata['ISTIO_VERSION'],
    ...nonces,
    resources: Object.fromEntries(
      proxy.types.map(({ typeUrl, sent, acked, synced, refused, overdue }) => [
        typeUrl,
        { sent, acked, synced, refused, ...(overdue.length > 0 && { overdue }) },
      ]),
    ),
  };
}

function client(proxy: ProxyState): object {
  const { metadata, locality, types } = proxy;
  return {
    ...lightClient(proxy),
    labels: metadata['LABELS'],
    metadata,
    locality,
    watches: Object.fromEntries(types.map(({ typeUrl, wildcard, names }) => [typeUrl, wildcard ? '*' : names])),
  };
}

function lightClient({ stream, nodeId, build, metadata }: ProxyState): object {
  return {
    connectionId: stream,
    node: nodeId,
    address: metadata['INSTANCE_IPS'] ?? nodeId.split('~')[1],
    version: build,
  };
}

function clients(proxies: Iterable<ProxyState>, show: (proxy: ProxyState) => object): ReturnType<Route> {
  const all = [...proxies];
  return jsonArrayAnswer(map(all, show), `{"totalClients": ${all.length}, "clients": `, '}');
}

/** `pod.namespace`, or the whole id for a plain Envoy. */
function workloadOf({ nodeId }: ProxyState): string {
  const parts = nodeId.split('~');
  return parts.length === 4 ? parts[2]! : nodeId;
}

function typeOf({ nodeId }: ProxyState): string {
  const parts = nodeId.split('~');
  return parts.length === 4 ? parts[0]! : '';
}

function* map<A, B>(elements: Iterable<A>, change: (element: A) => B): Generator<B> {
  for (const element of elements) yield change(element);
}

function* filter<A>(elements: Iterable<A>, keep: (element: A) => boolean): Generator<A> {
  for (const element of elements) if (keep(element)) yield element;
}
