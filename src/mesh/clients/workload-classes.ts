import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { contentHash } from '../../model/hash.ts';
import { type Labels, selects, tlsModeLabel } from '../../model/labels.ts';
import { type MeshService, isHeadless, protocolClass } from '../../model/service.ts';
import { type Traits, traitsKey } from '../../model/traits.ts';
import { labelKeys } from '../objects/label-keys.ts';
import { type Services, endpointKey } from '../objects/services.ts';

/**
 * Workloads that configuration cannot tell apart: replicas, even if they differ in labels that no selector names. What
 * selects the workloads is computed once per class; proxies refer to it by its key.
 */
export interface WorkloadClass {
  readonly key: string;
  /** Traits of their proxies. */
  readonly traits: Traits;
  readonly namespace: string;
  /**
   * Those of its labels that the selector of a Service or a policy asks for, with that value. Of a gRPC server, also what
   * it says about mutual TLS: unlike an Envoy, it cannot accept both.
   */
  readonly labels: Labels;
  /** Selectors mentioned anywhere that match. Sorted. */
  readonly matched: readonly string[];
  /** Key of the Sidecar in force; empty: none. */
  readonly sidecar: string;
  /**
   * Those of its ports that a service port in the namespace names; undefined if nothing is known about the workload.
   */
  readonly ports: Readonly<Record<string, number>> | undefined;
  /** A WorkloadEntry, which names service ports, describes it. */
  readonly isEntry: boolean;
  /** Filled only if something depends on them; otherwise empty, so that all replicas are in one class. */
  readonly addresses: readonly string[];
  /** Key of the {@link PatchSet} for what it serves; absent: none. */
  readonly patches?: string;
}

/**
 * Labels with their values, port names, and addresses by which services and policies select workloads. Nothing else splits a class:
 * a proxy can claim anything about itself.
 */
export type SelectedNames = Collection<true>;

type NameOf = 'label' | 'port' | 'address';

/** For policies in the root namespace. */
export const anyNamespace = '*';

const labelText = (name: string, value: string): string => `${name}=${value}`;

const labelsIn = (selector: Labels): string[] =>
  Object.entries(selector).map(([name, value]) => labelText(name, value));

const nameKey = (namespace: string, what: NameOf, name: string): string => `${namespace}|${what}|${name}`;

/** A label selector of a policy. */
export interface PolicySelector {
  /** Namespace of the workloads; `*`: any. */
  readonly namespace: string;
  readonly labels: Labels;
}

export function declareSelectedNames(
  graph: Graph,
  services: Services,
  policies: Collection<PolicySelector>,
): SelectedNames {
  const byServices = graph.derive('names in services', services.selecting, (key, service, _, emit: Emit<Names>) => {
    const { namespace, selector = {}, ports, endpoints } = service;
    const targets = ports.flatMap(({ targetPort }) => (typeof targetPort === 'string' ? [targetPort] : []));
    const names: readonly [NameOf, readonly string[]][] = [
      ['label', labelsIn(selector)],
      ['port', [...ports.map(({ name }) => name), ...targets]],
      ['address', endpoints.map(({ address }) => address)],
    ];
    emit(`Service/${key}`, [
      ...new Set(names.flatMap(([what, all]) => all.map((name) => nameKey(namespace, what, name)))),
    ]);
  });
  const byPolicies = graph.derive('names in policies', policies, (key, { namespace, labels }, _, emit: Emit<Names>) =>
    emit(
      key,
      labelsIn(labels).map((label) => nameKey(namespace, 'label', label)),
    ),
  );
  const by = graph.index('selected names', [byServices, byPolicies], (_, names) => names);
  return graph.derive('selectedNames', by, (key, _, __, emit: Emit<true>) => emit(key, true));
}

type Names = readonly string[];

interface WorkloadFacts extends Omit<WorkloadClass, 'key'> {
  /** It has listeners at its own addresses. */
  readonly hasIngress: boolean;
}

/** The class of a workload, from all that is known about it. */
export function workloadClass(
  { hasIngress, ...facts }: WorkloadFacts,
  read: Reader,
  names: SelectedNames,
): WorkloadClass {
  const { namespace, traits, addresses, ports } = facts;
  const isNamed = (what: NameOf, name: string): boolean =>
    read.get(names, nameKey(namespace, what, name)) !== undefined ||
    (what === 'label' && read.get(names, nameKey(anyNamespace, what, name)) !== undefined);
  const only = <T>(values: Readonly<Record<string, T>>, isKept: (name: string, value: T) => boolean) =>
    Object.fromEntries(
      Object.entries(values)
        .filter(([name, value]) => isKept(name, value))
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  const goesByAddress = hasIngress || addresses.some((address) => isNamed('address', address));
  const content = {
    ...facts,
    labels: only(
      facts.labels,
      (name, value) => isNamed('label', labelText(name, value)) || (traits.family === 'grpc' && name === tlsModeLabel),
    ),
    ports: ports && only(ports, (name) => isNamed('port', name)),
    addresses: goesByAddress ? addresses : [],
  };
  return { key: contentHash(JSON.stringify({ ...content, traits: traitsKey(traits) })), ...content };
}

export interface WorkloadClasses {
  readonly classes: Collection<WorkloadClass>;
  /** By class: keys of the services that select it or have an endpoint at its addresses, in its cluster, oldest first. */
  readonly services: Collection<readonly string[]>;
  /** By class: ports on which Pods of headless services have listeners of their own. */
  readonly headlessPorts: Collection<readonly number[]>;
}

/** @param members by class key. */
export function declareWorkloadClasses<T>(
  graph: Graph,
  services: Services,
  members: Index<T>,
  classOf: (member: T) => WorkloadClass | undefined,
): WorkloadClasses {
  const classes = graph.derive('workloadClasses', members, (key, [first], _, emit: Emit<WorkloadClass>) => {
    const found = classOf(first.value);
    if (found !== undefined) emit(key, found);
  });
  const selecting = graph.derive('services of workloads', classes, (key, one, read, emit: Emit<readonly string[]>) =>
    emit(key, selectingServices(one, read, services)),
  );
  const headlessPorts = graph.derive('headlessPorts', selecting, (key, keys, read, emit: Emit<readonly number[]>) => {
    const ports = keys
      .flatMap((service) => read.get(services.selecting, service) ?? [])
      .filter(isHeadless)
      .flatMap((service) => service.ports)
      .filter(({ protocol }) => protocolClass(protocol) !== 'http')
      .map(({ number }) => number);
    if (ports.length > 0)
      emit(
        key,
        [...new Set(ports)].sort((a, b) => a - b),
      );
  });
  return { classes, services: selecting, headlessPorts };
}

/** The services of a class. */
export function servicesOf(
  { key }: WorkloadClass,
  read: Reader,
  classes: WorkloadClasses,
  services: Services,
): readonly MeshService[] {
  return (read.get(classes.services, key) ?? []).flatMap((service) => read.get(services.selecting, service) ?? []);
}

/** The total number of ports of the services of a class, even if no workload of that class exists. */
export function portsSelecting(one: WorkloadClass, read: Reader, services: Services): number {
  return selectingServices(one, read, services)
    .map((key) => read.get(services.selecting, key)?.ports.length ?? 0)
    .reduce((a, b) => a + b, 0);
}

function selectingServices(
  { namespace, labels, addresses, traits }: WorkloadClass,
  read: Reader,
  services: Services,
): readonly string[] {
  const found = new Map<string, MeshService>();
  for (const key of labelKeys(namespace, labels))
    for (const { key: service, value } of read.group(services.bySelector, key))
      if (isFor(value, traits.cluster) && selects(value.selector!, labels)) found.set(service, value);
  for (const address of addresses)
    for (const { key: service, value } of read.group(services.byEndpoint, endpointKey(namespace, address)))
      found.set(service, value);
  return [...found].sort(([, a], [, b]) => compareAge(a, b) || (a.host < b.host ? -1 : 1)).map(([service]) => service);
}

/** ServiceEntries select workloads of all clusters, Services those of their own. */
function isFor({ registry, remote = '' }: MeshService, cluster: string): boolean {
  return registry === 'External' || remote === cluster;
}
