import type { ConfigMap, Namespace, Node, Pod, Service } from '../api/core.ts';
import { objectKey, parseObjectKey, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../cache/graph.ts';
import { compareAge } from '../model/age.ts';
import type { Workload } from '../model/endpoint.ts';
import { spreadHash } from '../model/hash.ts';
import type { Labels } from '../model/labels.ts';
import type {
  ClusterSettings,
  ListenerSettings,
  MeshConfig,
  RouteSettings,
  VisibilitySettings,
} from '../model/mesh-config.ts';
import { type Alias, type MeshService, serviceKey } from '../model/service.ts';
import { type MeshConfigProblem, reconcileMeshConfig } from '../reconcilers/mesh-config.ts';
import { mergeClaims } from '../reconcilers/host-claims.ts';
import { type ReconciledServiceEntry, reconcileServiceEntry } from '../reconcilers/service-entry.ts';
import { reconcileService } from '../reconcilers/service.ts';
import { type ReconciledWorkloadEntry, reconcilePod, reconcileWorkloadEntry } from '../reconcilers/workload.ts';
import { type Inputs, ONE, optionsOf, siblingKey } from './inputs.ts';

/** Services of a namespace are spread over this many shards, the unit in which proxies share what they see. */
export const SHARDS = 16;

interface ParsedMeshConfig {
  readonly config: MeshConfig;
  readonly problems: readonly Problem[];
}

export interface Settings {
  readonly parsed: Collection<ParsedMeshConfig>;
  readonly visibility: Collection<VisibilitySettings>;
  readonly clusters: Collection<ClusterSettings>;
  readonly routes: Collection<RouteSettings>;
  readonly listeners: Collection<ListenerSettings>;
}

/** The mesh config in sections, so that a change of one marks only its readers. */
export function declareSettings(graph: Graph, inputs: Inputs): Settings {
  const parsed = graph.derive('meshConfig', inputs.options, (_, options, read, emit: Emit<ParsedMeshConfig>) => {
    const key = objectKey(options.source, options.rootNamespace, 'istio');
    const map = read.get(inputs.objects.ConfigMap, key) as ConfigMap | undefined;
    const { config, problems } = reconcileMeshConfig(map?.data?.['mesh'], options.rootNamespace, options.domainSuffix);
    emit(ONE, { config, problems: map === undefined ? [] : problems.map((problem) => inConfigMap(problem, map, key)) });
  });
  const section = <K extends keyof MeshConfig>(name: K) =>
    graph.derive(`meshConfig.${name}`, parsed, (key, { config }, _, emit: Emit<MeshConfig[K]>) =>
      emit(key, config[name]),
    );
  return {
    parsed: parsed,
    visibility: section('visibility'),
    clusters: section('clusters'),
    routes: section('routes'),
    listeners: section('listeners'),
  };
}

/** The mesh config is the text of one key. */
function inConfigMap({ field, ...problem }: MeshConfigProblem, map: ConfigMap, key: string): Problem {
  return {
    ...problem,
    object: refOf(parseObjectKey(key).source, map),
    field: field === '' ? 'data.mesh' : `data.mesh.${field}`,
  };
}

/** One section; it is there as soon as the options are. */
export function settingOf<T>(read: Reader, section: Collection<T>): T {
  const value = read.get(section, ONE);
  if (value === undefined) throw new Error('the options were not written');
  return value;
}

export interface Workloads {
  readonly pods: Collection<Workload>;
  /** WorkloadEntries as parsed. */
  readonly parsedEntries: Collection<ReconciledWorkloadEntry>;
  readonly entries: Collection<Workload>;
  /** By `namespace/address`. */
  readonly byAddress: Index<Workload>;
  /** By `namespace|label=value`; see {@link selectedWorkloads}. */
  readonly byLabel: Index<Workload>;
}

export function declareWorkloads(graph: Graph, inputs: Inputs, settings: Settings): Workloads {
  const contextOf = (read: Reader) => ({
    cluster: optionsOf(read, inputs).clusterId,
    trustDomain: settingOf(read, settings.visibility).trustDomain,
  });
  const pods = graph.derive('pods', inputs.objects.Pod, (key, object, read, emit: Emit<Workload>) => {
    const pod = object as Pod;
    const nodeName = pod.spec?.nodeName;
    const node = nodeName ? read.get(inputs.objects.Node, siblingKey(key, '', nodeName)) : undefined;
    const workload = reconcilePod(pod, { ...contextOf(read), node: node as Node | undefined });
    if (workload !== undefined) emit(key, workload);
  });
  const parsedEntries = graph.derive(
    'workloadEntries',
    inputs.objects.WorkloadEntry,
    (key, object, read, emit: Emit<ReconciledWorkloadEntry>) =>
      emit(key, reconcileWorkloadEntry(object, { ...contextOf(read), source: parseObjectKey(key).source })),
  );
  const entries = graph.derive('entryWorkloads', parsedEntries, (key, { workloads }, _, emit: Emit<Workload>) => {
    for (const workload of workloads) emit(`${key}#entry`, workload);
  });
  const both = [pods, entries];
  return {
    pods,
    parsedEntries,
    entries,
    byAddress: graph.index('workloads by address', both, (_, w) => w.addresses.map((a) => `${w.namespace}/${a}`)),
    byLabel: graph.index('workloads by label', both, (_, w) => labelKeys(w.namespace, w.labels)),
  };
}

/** `namespace|key=value` for each label: how selectors find what they select without looking at a whole namespace. */
export function labelKeys(namespace: string, labels: Labels): string[] {
  return Object.keys(labels).map((key) => `${namespace}|${key}=${labels[key]}`);
}

/** The one key under which what this selector selects is looked for; undefined for an empty selector. */
export function selectorKey(namespace: string, selector: Labels): string | undefined {
  return labelKeys(namespace, selector).sort()[0];
}

/** Workloads of a namespace that may match a selector: kind, then name. The caller checks the other labels. */
export function selectedWorkloads(
  read: Reader,
  workloads: Workloads,
  namespace: string,
  selector: Labels,
): readonly Workload[] {
  const key = selectorKey(namespace, selector);
  if (key === undefined) return [];
  return read.group(workloads.byLabel, key).map((member) => member.value);
}

export interface Services {
  /** ServiceEntries as parsed. */
  readonly parsedEntries: Collection<ReconciledServiceEntry>;
  /** What each object claims, before claims of one host are merged. */
  readonly claims: Index<MeshService>;
  /** By `namespace/host`. */
  readonly services: Collection<MeshService>;
  /** By host, the one that wins first: Kubernetes before ServiceEntry, then the oldest. */
  readonly byHost: Index<MeshService>;
  /** By `namespace/shard`. */
  readonly byShard: Index<MeshService>;
  /** By address. Oldest first. */
  readonly byAddress: Index<MeshService>;
  /** By the first label of the selector: `namespace|label=value`. */
  readonly bySelector: Index<MeshService>;
}

export function declareServices(graph: Graph, inputs: Inputs, settings: Settings): Services {
  const serviceClaims = graph.derive(
    'serviceClaims',
    inputs.objects.Service,
    (key, object, read, emit: Emit<MeshService>) => {
      const { namespace = '' } = object.metadata;
      const { trustDomain, defaultServiceExportTo } = settingOf(read, settings.visibility);
      const service = reconcileService(object as Service, {
        source: key.slice(0, key.indexOf('/')),
        domainSuffix: optionsOf(read, inputs).domainSuffix,
        trustDomain,
        defaultExportTo: defaultServiceExportTo,
        namespace: read.get(inputs.objects.Namespace, siblingKey(key, '', namespace)) as Namespace | undefined,
      });
      emit(`Service/${key}`, service);
    },
  );
  const parsedEntries = graph.derive(
    'serviceEntries',
    inputs.objects.ServiceEntry,
    (key, object, read, emit: Emit<ReconciledServiceEntry>) => {
      const { trustDomain, defaultServiceExportTo } = settingOf(read, settings.visibility);
      emit(
        key,
        reconcileServiceEntry(object, {
          source: key.slice(0, key.indexOf('/')),
          trustDomain,
          defaultExportTo: defaultServiceExportTo,
        }),
      );
    },
  );
  const entryClaims = graph.derive('entryClaims', parsedEntries, (key, { services }, _, emit: Emit<MeshService>) => {
    for (const service of services) emit(`ServiceEntry/${key}/${service.host}`, service);
  });
  const both = [serviceClaims, entryClaims];
  const byAge = (a: { value: MeshService }, b: { value: MeshService }) =>
    Number(a.value.registry !== 'Kubernetes') - Number(b.value.registry !== 'Kubernetes') ||
    compareAge(a.value, b.value);
  const claims = graph.index('claims', both, (_, service) => [serviceKey(service)], byAge);
  const aliases = graph.index('aliases', both, (_, service) =>
    service.resolution === 'Alias' ? [service.externalName!] : [],
  );
  const services = graph.derive('services', claims, (key, members, read, emit: Emit<MeshService>) => {
    const merged = mergeClaims(members.map((member) => member.value));
    const found = merged.resolution === 'Alias' ? [] : aliasesOf(merged.host, (host) => read.group(aliases, host));
    emit(key, found.length === 0 ? merged : { ...merged, aliases: found });
  });
  return {
    parsedEntries: parsedEntries,
    claims,
    services,
    byHost: graph.index('services by host', services, (_, service) => [service.host], byAge),
    byShard: graph.index(
      'services by shard',
      services,
      (_, service) => [shardOf(service)],
      (a, b) => compareAge(a.value, b.value),
    ),
    byAddress: graph.index(
      'services by address',
      services,
      (_, service) => service.addresses.filter((address) => address !== '0.0.0.0'),
      (a, b) => compareAge(a.value, b.value),
    ),
    bySelector: graph.index('services by selector', services, (_, service) => {
      const key = service.selector === undefined ? undefined : selectorKey(service.namespace, service.selector);
      return key === undefined ? [] : [key];
    }),
  };
}

/** `namespace/shard` */
export function shardOf(service: Pick<MeshService, 'namespace' | 'host'>): string {
  return `${service.namespace}/${spreadHash(service.host) % SHARDS}`;
}

/** Aliases of a host, and aliases of these; a loop ends where it began. */
function aliasesOf(host: string, pointingTo: (host: string) => readonly { value: MeshService }[]): Alias[] {
  const found = new Map<string, Alias>();
  const open = [host];
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const { value } of pointingTo(next))
      if (value.host !== host && !found.has(value.host)) {
        found.set(value.host, { host: value.host, namespace: value.namespace, origins: value.origins });
        open.push(value.host);
      }
  return [...found.values()].sort((a, b) => (a.host < b.host ? -1 : 1));
}
