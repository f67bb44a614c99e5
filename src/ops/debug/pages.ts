import { isIP } from 'node:net';
import type { KubernetesObject } from '../../api/object.ts';
import { printRef } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Answer, Request, Route } from '../http-server.ts';
import { jsonAnswer, jsonArrayAnswer, jsonObjectAnswer, jsonPieces } from '../json-answer.ts';
import { loopbackOnly, refusal } from './local.ts';
import { type ProxyState, client, findProxy, lightClient, syncState, workloadOf } from './proxies.ts';

/** What the debug pages show; called when a page is requested. */
export interface DebugSources {
  /** Proxies that have identified themselves. */
  readonly proxies: () => Iterable<ProxyState>;
  /** JSON of what a proxy is given, in the form of Envoy's config dump. */
  readonly configDump: (stream: string, options: DumpOptions) => Iterable<string>;
  /** Hosts of the mesh, in Istio's JSON. */
  readonly services: () => Iterable<object>;
  /** By host: the endpoints of the services that claim it, in Istio's JSON. */
  readonly endpoints: () => Iterable<readonly [host: string, shards: object]>;
  /** All known objects, of all kinds. */
  readonly objects: () => Iterable<KubernetesObject>;
  readonly problems: () => Iterable<Problem>;
  /** Endpoints that are served although they are no longer listed. */
  readonly held: () => Iterable<object>;
  /** JSON of how far proxies have followed the objects; only of one proxy, if one is asked for. */
  readonly status: (proxy: string | undefined) => Iterable<string>;
  /** The clusters that objects come from. */
  readonly clusters: () => Iterable<object>;
  /** Who has an address, as clusters of a ClusterMesh say. */
  readonly identities: (address: string) => readonly object[];
  /** The networks that have gateways, and those. */
  readonly networks: () => Iterable<object>;
  /** In Istio's JSON. */
  readonly multiclusterServices: () => Iterable<object>;
  /** The last commits, the newest first. */
  readonly commits: () => Iterable<object>;
  /** Records this process for this long; undefined: a recording is under way. */
  readonly record: (ms: number) => AsyncIterable<string> | undefined;
  /** Location of an object that came from a file: `file:line`. */
  readonly locate?: (problem: Problem) => string | undefined;
}

export interface DumpOptions {
  /** Short names (cds, eds, ...) or type URLs: only these resources, without the dump around them. */
  readonly types?: readonly string[];
  /** Envoy leaves them out unless it is asked. */
  readonly endpoints: boolean;
}

interface Page {
  readonly help: string;
  readonly show: (query: URLSearchParams) => PageAnswer;
}

/** Complete, or made in pieces without waiting. */
export interface PageAnswer extends Answer {
  readonly body: string | Iterable<string>;
}

/** By name, with the names and formats of Istio's pages where these exist. They do not care who asks. */
export type DebugPages = ReadonlyMap<string, Page>;

export function debugPages(sources: DebugSources): DebugPages {
  const {
    proxies,
    configDump,
    services,
    endpoints,
    objects,
    problems,
    held,
    status,
    clusters,
    identities,
    networks,
    multiclusterServices,
    commits,
    locate,
  } = sources;
  const dump = (query: URLSearchParams, types: readonly string[] | undefined): PageAnswer => {
    const id = query.get('proxyID') ?? '';
    if (id === '') return refusal(400, 'You must provide a proxyID in the query string');
    const proxy = findProxy(proxies(), id);
    if (proxy === undefined) return refusal(404, NOT_CONNECTED);
    const options = { ...(types && { types }), endpoints: query.has('include_eds') };
    return { type: 'application/json', body: configDump(proxy.stream, options) };
  };
  const pages = new Map<string, Page>([
    [
      'syncz',
      {
        help: 'what each proxy was sent and has acknowledged; filter by proxyID= and namespace=',
        show: (query) => jsonArrayAnswer(map(asked(proxies(), query), syncState)),
      },
    ],
    [
      'status',
      {
        help: 'objects that not every proxy has acknowledged, and how far each proxy has come; filter by proxyID=',
        show: (query) => ({ type: 'application/json', body: status(query.get('proxyID') ?? undefined) }),
      },
    ],
    [
      'adsz',
      {
        help: 'connected proxies with their metadata; filter by proxyID=',
        show: (query) => clients(asked(proxies(), query), client),
      },
    ],
    ['connections', { help: 'connected proxies', show: (query) => clients(asked(proxies(), query), lightClient) }],
    [
      'config_dump',
      {
        help: 'what the proxy proxyID= is given, like the config dump of Envoy; with include_eds, or only types=cds,rds',
        show: (query) => dump(query, query.get('types')?.split(',')),
      },
    ],
    ['edsz', { help: 'the endpoints that the proxy proxyID= is given', show: (query) => dump(query, ['eds']) }],
    ['clusterz', { help: 'clusters that objects come from', show: () => jsonArrayAnswer(clusters()) }],
    [
      'identityz',
      {
        help: 'who has the address address=, as clusters of a ClusterMesh say',
        show(query) {
          const address = query.get('address') ?? '';
          if (isIP(address) === 0) return refusal(400, 'You must provide an IP address= in the query string');
          return jsonArrayAnswer(identities(address));
        },
      },
    ],
    ['networkz', { help: 'networks that have gateways, and where these are', show: () => jsonArrayAnswer(networks()) }],
    [
      'mcsz',
      {
        help: 'ServiceExports and ServiceImports of all clusters',
        show: () => jsonArrayAnswer(multiclusterServices()),
      },
    ],
    ['registryz', { help: 'hosts of the mesh', show: () => jsonArrayAnswer(services()) }],
    ['endpointShardz', { help: 'endpoints of the mesh, by host', show: () => jsonObjectAnswer(endpoints()) }],
    ['endpointz', { help: 'the same as endpointShardz', show: () => jsonObjectAnswer(endpoints()) }],
    [
      'configz',
      {
        help: 'all known objects; filter by kind=, namespace= and name=',
        show: (query) => jsonArrayAnswer(filter(objects(), (object) => isAsked(object, query))),
      },
    ],
    [
      'held',
      {
        help: 'endpoints that are served although they are no longer listed, because their Pods are ready',
        show: () => jsonArrayAnswer(held()),
      },
    ],
    [
      'commits',
      { help: 'the last commits: what caused them, and what they changed', show: () => jsonArrayAnswer(commits()) },
    ],
    [
      'problems',
      {
        help: 'what is wrong with objects',
        show: () =>
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
    ],
  ]);
  return pages.set('list', { help: 'the names of these pages', show: () => jsonAnswer([...pages.keys()].sort()) });
}

/** `/debug/...`, for this machine only. */
export function debugRoutes(sources: DebugSources): [string, Route][] {
  const pages = [...debugPages(sources)];
  const index: Route = () => jsonAnswer(pages.map(([name, { help }]) => ({ path: `/debug/${name}`, help })));
  return [
    ['/debug', loopbackOnly(index)],
    ['/debug/record', loopbackOnly(({ query }) => recording(query, sources))],
    ...pages.map(([name, { show }]): [string, Route] => [
      `/debug/${name}`,
      loopbackOnly(({ query }: Request) => show(query)),
    ]),
  ];
}

function recording(query: URLSearchParams, { record }: DebugSources): Answer {
  const seconds = Number(query.get('seconds') ?? '60');
  if (!(seconds > 0 && seconds <= LONGEST_RECORDING)) return refusal(400, `seconds must be up to ${LONGEST_RECORDING}`);
  const lines = record(seconds * 1000);
  return lines === undefined ? refusal(503, 'a recording is under way') : { type: 'application/jsonl', body: lines };
}

/** Seconds. */
const LONGEST_RECORDING = 3_600;

/** In Istio's words, by which its tools know that another replica may have the proxy. */
export const NOT_CONNECTED = 'Proxy not connected to this Pilot instance. It may be connected to another instance.';

function isAsked({ kind, metadata }: KubernetesObject, query: URLSearchParams): boolean {
  const fits = (name: string, value: string): boolean => (query.get(name) ?? value) === value;
  return fits('kind', kind) && fits('namespace', metadata.namespace ?? '') && fits('name', metadata.name);
}

/** The proxies requested, as Istio's tools do: by `pod.namespace`, by the whole id, or by namespace. */
function asked(proxies: Iterable<ProxyState>, query: URLSearchParams): Iterable<ProxyState> {
  const id = query.get('proxyID');
  const namespace = query.get('namespace');
  if (id === null && namespace === null) return proxies;
  return filter(
    proxies,
    (proxy) =>
      (id === null || id === workloadOf(proxy) || id === proxy.nodeId) &&
      (namespace === null || namespace === proxy.metadata['NAMESPACE']),
  );
}

function clients(proxies: Iterable<ProxyState>, show: (proxy: ProxyState) => object): PageAnswer {
  const all = [...proxies];
  const body = jsonPieces(map(all, show), `{"totalClients": ${all.length}, "clients": [`, ']}');
  return { type: 'application/json', body };
}

function* map<A, B>(elements: Iterable<A>, change: (element: A) => B): Generator<B> {
  for (const element of elements) yield change(element);
}

function* filter<A>(elements: Iterable<A>, keep: (element: A) => boolean): Generator<A> {
  for (const element of elements) if (keep(element)) yield element;
}
