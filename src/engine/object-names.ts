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
 * `gateway NAMESPACE/NAME`, or `routes NAMESPACE/NAME`, which is a VirtualService to delegate to. `port HOST *` is
 * offered where nobody knows which ports there are.
 */
export type Name = string;

export interface ObjectNames {
  /** What others may name because the object is there. */
  readonly offers: ReadonlySet<Name>;
  /** What it needs others to offer, at most {@link MOST_NAMES}. */
  readonly needs: ReadonlySet<Name>;
}

/**
 * An object can have a hundred thousand destinations, and these are looked up whenever something they name changes. So many
 * ports of hosts, too: a small ServiceEntry can have 256 hosts with 256 ports.
 */
const MOST_NAMES = 2_000;
/** Characters, more than a name of something that can be there. Each subset would be as long as its host. */
const LONGEST_NAME = 512;

const NOTHING: ObjectNames = { offers: new Set(), needs: new Set() };

interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly spec: Json;
}

type Reader = (object: Named, domainSuffix: string) => { offers?: Iterable<Name>; needs?: Iterable<Name> };

const readers: Partial<Record<SourceKindName, Reader>> = {
  Service: ({ namespace, name, spec }, domainSuffix) => ({
    offers: withPorts(
      [canonicalHost(`${name}.${namespace}.svc.${domainSuffix}`)],
      objects(spec['ports']).map(({ port }) => port),
    ),
  }),
  ServiceImport: ({ namespace, name }) => ({
    offers: withPorts([canonicalHost(`${name}.${namespace}.svc.${clusterSetDomain}`)], undefined),
  }),
  ServiceEntry: ({ spec }) => ({
    offers: withPorts(
      list(spec['hosts']).flatMap((host) => (typeof host === 'string' ? [canonicalHost(host)] : [])),
      objects(spec['ports']).map(({ number }) => number),
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
  return { offers: firstOf(offers, Infinity), needs: firstOf(needs, MOST_NAMES) };
}

/** What is offered, or needed, by more than one name: a host, also by its ports and subsets. */
export function subjectOf(name: Name): string {
  const [kind = '', subject = ''] = name.split(' ', 2);
  return kind === 'gateway' || kind === 'routes' ? name : subject;
}

export const hostName = (host: string): Name => `host ${host}`;

export const subsetName = (host: string, subset: string): Name => `subset ${host} ${subset}`;

/** Offered where nobody knows which ports there are. */
export const anyPort = (host: string): Name => `port ${host} *`;

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

/** @param ports undefined: they are not known. */
function* withPorts(hosts: readonly string[], ports: readonly unknown[] | undefined): Generator<Name> {
  for (const host of hosts) {
    yield hostName(host);
    if (ports === undefined || hosts.length * ports.length > MOST_NAMES) yield anyPort(host);
    else for (const port of ports) yield portName(host, port);
  }
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

function firstOf(all: Iterable<Name>, most: number): ReadonlySet<Name> {
  const found = new Set<Name>();
  for (const each of all) {
    if (each.length > LONGEST_NAME) continue;
    found.add(each);
    if (found.size === most) break;
  }
  return found;
}

const member = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const objects = (value: unknown): readonly Json[] => list(value).filter(isObject);
