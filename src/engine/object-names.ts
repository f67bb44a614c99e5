import { isObject, type Json, textOf } from '../api/json.ts';
import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import { quote } from '../api/quote.ts';
import { clusterSetDomain } from '../model/exported-service.ts';
import { canonicalHost, resolveShortName } from '../model/host.ts';
import { meshGateway } from '../model/virtual-service.ts';
import { gatewayNamed } from '../reconcilers/virtual-service/names.ts';

/**
 * Something that one object has and another may name: `host HOST`, `port HOST NUMBER`, `subset HOST NAME`,
 * `gateway NAMESPACE/NAME`, or `routes NAMESPACE/NAME`, which is a VirtualService to delegate to.
 */
export type Name = string;

export interface ObjectNames {
  /** What others may name because the object is there. */
  readonly offers: ReadonlySet<Name>;
  /** What it needs others to offer, at most {@link MOST_NAMES}. */
  readonly needs: ReadonlySet<Name>;
}

/** An object can have a hundred thousand destinations, and these are looked up whenever something they name changes. */
const MOST_NAMES = 2_000;

const NOTHING: ObjectNames = { offers: new Set(), needs: new Set() };

interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly spec: Json;
}

type Reader = (object: Named, domainSuffix: string) => { offers?: Iterable<Name>; needs?: Iterable<Name> };

const readers: Partial<Record<SourceKindName, Reader>> = {
  Service: ({ namespace, name, spec }, domainSuffix) => ({
    offers: hostAndPorts(canonicalHost(`${name}.${namespace}.svc.${domainSuffix}`), objects(spec['ports']), 'port'),
  }),
  ServiceImport: ({ namespace, name }) => ({
    offers: [hostName(canonicalHost(`${name}.${namespace}.svc.${clusterSetDomain}`))],
  }),
  ServiceEntry: ({ spec }) => ({
    offers: list(spec['hosts']).flatMap((host) =>
      typeof host === 'string' ? hostAndPorts(canonicalHost(host), objects(spec['ports']), 'number') : [],
    ),
  }),
  DestinationRule: ({ namespace, spec }, domainSuffix) => {
    const host = resolveShortName(textOf(spec['host']), namespace, domainSuffix);
    return { offers: objects(spec['subsets']).map(({ name }) => subsetName(host, textOf(name))) };
  },
  Gateway: ({ namespace, name }) => ({ offers: [`gateway ${namespace}/${name}`] }),
  VirtualService: ({ namespace, name, spec }, domainSuffix) => ({
    offers: [`routes ${namespace}/${name}`],
    needs: needsOfRoutes(spec, namespace, domainSuffix),
  }),
  Sidecar: ({ namespace, spec }, domainSuffix) => ({
    needs: needsOf(member(spec['outboundTrafficPolicy'], 'egressProxy'), namespace, domainSuffix),
  }),
};

/** Whether objects of the kind name others, or others name them. */
export function hasNames(kind: SourceKindName): boolean {
  return readers[kind] !== undefined;
}

/** Of an object as it was delivered: it may be invalid. */
export function namesOf(
  kind: SourceKindName,
  object: (KubernetesObject & { readonly spec?: unknown }) | undefined,
  domainSuffix: string,
): ObjectNames {
  const read = readers[kind];
  if (read === undefined || object === undefined) return NOTHING;
  const { namespace = '', name } = object.metadata;
  const { offers = [], needs = [] } = read(
    { namespace, name, spec: isObject(object.spec) ? object.spec : {} },
    domainSuffix,
  );
  return { offers: new Set(offers), needs: firstOf(needs, MOST_NAMES) };
}

/** What is offered, or needed, by more than one name: a host, also by its ports and subsets. */
export function subjectOf(name: Name): string {
  const [kind = '', subject = ''] = name.split(' ', 2);
  return kind === 'gateway' || kind === 'routes' ? name : subject;
}

export const hostName = (host: string): Name => `host ${host}`;

export const subsetName = (host: string, subset: string): Name => `subset ${host} ${subset}`;

/** Its parts: kind, host or object, and for ports and subsets what of the host. */
export function parseName(name: Name): { readonly kind: string; readonly subject: string; readonly part: string } {
  const [kind = '', subject = ''] = name.split(' ', 2);
  return { kind, subject, part: name.slice(kind.length + subject.length + 2) };
}

/** For people. */
export function describeName(name: Name): string {
  const { kind, subject, part } = parseName(name);
  switch (kind) {
    case 'port':
      return `port ${part} of ${quote(subject)}`;
    case 'subset':
      return `subset ${quote(part)} of ${quote(subject)}`;
    case 'gateway':
      return `Gateway ${quote(subject)}`;
    case 'routes':
      return `VirtualService ${quote(subject)}`;
    default:
      return `host ${quote(subject)}`;
  }
}

function hostAndPorts(host: string, ports: readonly Json[], number: string): Name[] {
  return [hostName(host), ...ports.map((port) => portName(host, port[number]))];
}

const portName = (host: string, number: unknown): Name => `port ${host} ${typeof number === 'number' ? number : ''}`;

function* needsOfRoutes(spec: Json, namespace: string, domainSuffix: string): Generator<Name> {
  for (const gateway of list(spec['gateways'])) {
    const named = gatewayNamed(textOf(gateway), namespace);
    if (named !== meshGateway) yield `gateway ${named}`;
  }
  for (const protocol of ['http', 'tcp', 'tls'])
    for (const route of objects(spec[protocol])) {
      for (const { destination } of objects(route['route'])) yield* needsOf(destination, namespace, domainSuffix);
      yield* needsOf(route['mirror'], namespace, domainSuffix);
      for (const { destination } of objects(route['mirrors'])) yield* needsOf(destination, namespace, domainSuffix);
      const { delegate } = route;
      if (isObject(delegate)) yield `routes ${textOf(delegate['namespace']) || namespace}/${textOf(delegate['name'])}`;
    }
}

function* needsOf(destination: unknown, namespace: string, domainSuffix: string): Generator<Name> {
  const written = textOf(member(destination, 'host'));
  if (!isObject(destination) || written === '') return;
  const host = resolveShortName(written, namespace, domainSuffix);
  yield hostName(host);
  const port = member(destination['port'], 'number');
  if (port !== undefined) yield portName(host, port);
  const subset = textOf(destination['subset']);
  if (subset !== '') yield subsetName(host, subset);
}

function firstOf<T>(all: Iterable<T>, most: number): ReadonlySet<T> {
  const found = new Set<T>();
  for (const each of all) {
    found.add(each);
    if (found.size === most) break;
  }
  return found;
}

const member = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const objects = (value: unknown): readonly Json[] => list(value).filter(isObject);
