import { nameKey, parseNameKey } from '../../api/keys.ts';
import { sourceOfKey } from '../../api/object.ts';
import type { Namespace, Service } from '../../api/core.ts';
import type { ServiceImport } from '../../api/multicluster.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import type { AddressClaim } from '../../model/address-claim.ts';
import { compareAge, compareText } from '../../model/age.ts';
import { isClusterMesh } from '../../model/cluster-mesh.ts';
import { spreadHash } from '../../model/hash.ts';
import { isWildcard } from '../../model/host.ts';
import { type Alias, type MeshService, exportsOf, serviceKey } from '../../model/service.ts';
import { mergeClaims } from '../../reconcilers/service-entry/host-claims.ts';
import {
  type ReconciledServiceEntry,
  allocatedAddresses,
  reconcileServiceEntry,
} from '../../reconcilers/service-entry/service-entry.ts';
import { reconcileService } from '../../reconcilers/core/service.ts';
import { type ReconciledImport, reconcileServiceImport } from '../../reconcilers/multicluster/service-import.ts';
import {
  type Exports,
  declareExports,
  declareImportedAddresses,
  multiclusterServicesOff,
  hasMulticlusterServices,
  isStandIn,
} from './exports.ts';
import { type Inputs, optionsOf, siblingKey } from '../inputs.ts';
import { type InForce, declareReconciled } from './in-force.ts';
import { selectorKey } from './label-keys.ts';
import { type LostRanges, declareLostRanges, lostRangesOf } from './lost-ranges.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { TrustDomains } from './trust-domains.ts';

/**
 * A namespace's services are spread over this many shards. Shards are the unit in which proxies share what they see.
 */
export const SHARDS = 16;

export interface Services {
  /** ServiceEntries as parsed. */
  readonly parsedEntries: Collection<ReconciledServiceEntry & InForce>;
  /** ServiceImports as parsed. */
  readonly parsedImports: Collection<ReconciledImport>;
  /** What ServiceExports say. */
  readonly exports: Exports;
  /** ServiceEntries with hosts that are to have automatic addresses, with such addresses, or with others. By object. */
  readonly addressClaims: Collection<AddressClaim>;
  /** What each object claims, before the claims for one host are merged. */
  readonly claims: Index<MeshService>;
  /** By `namespace/host`. */
  readonly services: Collection<MeshService>;
  /** A Service as each of its clusters has it, for the workloads there; and ServiceEntries, for those of all clusters. */
  readonly selecting: Collection<MeshService>;
  /** By host, the winner first: Kubernetes before ServiceEntry, then oldest first. */
  readonly byHost: Index<MeshService>;
  /** By `namespace/shard`. */
  readonly byShard: Index<MeshService>;
  /** By address, including allocated ones and those in other clusters. Oldest first. */
  readonly byAddress: Index<MeshService>;
  /** Services and ServiceImports by address, oldest first. Those of other clusters are under keys of their own. */
  readonly addressOwners: Index<MeshService>;
  /** Kubernetes Services by name, in any namespace. Oldest first. */
  readonly byName: Index<MeshService>;
  readonly lostRanges: LostRanges;
  /** Of `selecting`, by the first label of the selector: `namespace|label=value`. */
  readonly bySelector: Index<MeshService>;
  /** Of `selecting`, by the addresses of inline endpoints: `namespace/address`. */
  readonly byEndpoint: Index<MeshService>;
}

export function declareServices(
  graph: Graph,
  inputs: Inputs,
  settings: Settings,
  trustDomains: TrustDomains,
): Services {
  const serviceClaims = declareServiceClaims(graph, inputs, settings, trustDomains);
  const exports = declareExports(graph, inputs, serviceClaims);
  const parsedEntries = declareParsedEntries(graph, inputs, settings);
  const parsedImports = declareParsedImports(graph, inputs, settings, serviceClaims, exports);
  const importClaims = graph.derive('importClaims', parsedImports, (key, { service }, _, emit: Emit<MeshService>) => {
    if (service !== undefined) emit(`ServiceImport/${key}`, service);
  });
  const addressOwners = indexOwners(graph, 'owners of addresses', [serviceClaims, importClaims]);
  const entryClaims = declareEntryClaims(graph, parsedEntries, addressOwners);
  const all = [serviceClaims, importClaims, entryClaims];
  const claims = graph.index('claims', all, (_, service) => [serviceKey(service)], bySource);
  const lostRanges = declareLostRanges(graph, serviceClaims, entryClaims, claims);
  const services = declareMerged(graph, inputs, all, claims, lostRanges);
  const selecting = graph.derive('selectingServices', services, (key, service, read, emit: Emit<MeshService>) => {
    emit(`${key}|${service.remote ?? ''}`, service);
    if (service.addressesIn === undefined) return;
    const [, ...others] = read.group(claims, key).map(({ value }) => value);
    for (const other of others) if (other.registry === 'Kubernetes') emit(`${key}|${other.remote ?? ''}`, other);
  });
  return {
    ...{ parsedEntries, parsedImports, exports, claims, services, selecting, addressOwners, lostRanges },
    addressClaims: declareAddressClaims(graph, inputs, parsedEntries),
    byHost: graph.index('services by host', services, (_, service) => [service.host], bySource),
    byShard: graph.index('services by shard', services, (_, service) => [shardOf(service)], byAge),
    byName: graph.index('services by name', serviceClaims, (_, { name }) => [name], byAge),
    byAddress: graph.index('services by address', services, (_, service) => allAddressesOf(service), byAge),
    bySelector: graph.index('services by selector', selecting, (_, service) => {
      const key = service.selector === undefined ? undefined : selectorKey(service.namespace, service.selector);
      return key === undefined ? [] : [key];
    }),
    byEndpoint: graph.index('services by endpoint', selecting, (_, service) =>
      service.endpoints.map(({ address }) => endpointKey(service.namespace, address)),
    ),
  };
}

type Claim = { readonly value: MeshService };

const byAge = (a: Claim, b: Claim): number => compareAge(a.value, b.value);

/** Kubernetes first, then the cluster that says most about a Service, then the oldest. */
const bySource = (a: Claim, b: Claim): number =>
  Number(a.value.registry !== 'Kubernetes') - Number(b.value.registry !== 'Kubernetes') ||
  // ClusterMesh says less about a Service than an API server.
  Number(isClusterMesh(a.value.remote ?? '')) - Number(isClusterMesh(b.value.remote ?? '')) ||
  compareText(a.value.remote ?? '', b.value.remote ?? '') ||
  compareAge(a.value, b.value);

/** What Kubernetes Services claim, in each cluster. */
function declareServiceClaims(
  graph: Graph,
  inputs: Inputs,
  settings: Settings,
  trustDomains: TrustDomains,
): Collection<MeshService> {
  const importedAddresses = declareImportedAddresses(graph, inputs);
  return graph.derive('serviceClaims', inputs.objects.Service, (key, object, read, emit: Emit<MeshService>) => {
    const { namespace = '' } = object.metadata;
    const { defaultServiceExportTo } = settingOf(read, settings.visibility);
    const [source, { clusterId, domainSuffix }] = [sourceOfKey(key), optionsOf(read, inputs)];
    const service = reconcileService(object as Service, {
      source,
      domainSuffix,
      trustDomain: trustDomains.of(read, source),
      defaultExportTo: defaultServiceExportTo,
      namespace: read.get(inputs.objects.Namespace, siblingKey(key, '', namespace)) as Namespace | undefined,
    });
    if (hasMulticlusterServices(read, inputs) && isStandIn(service, source, read, importedAddresses)) return;
    if (source === clusterId) return emit(`Service/${key}`, service);
    emit(`Service/${key}`, { ...service, remote: source });
  });
}

function declareParsedEntries(graph: Graph, inputs: Inputs, settings: Settings): Services['parsedEntries'] {
  return declareReconciled<ReconciledServiceEntry>(
    graph,
    'serviceEntries',
    'ServiceEntry',
    inputs,
    (key, object, read) => {
      const { trustDomain, defaultServiceExportTo } = settingOf(read, settings.visibility);
      return reconcileServiceEntry(object, {
        source: sourceOfKey(key),
        trustDomain,
        defaultExportTo: defaultServiceExportTo,
        rootNamespace: optionsOf(read, inputs).rootNamespace,
        allocated: read.get(inputs.allocated, key),
      });
    },
    { services: [], hosts: [], addresses: [], unaddressed: [] },
  );
}

function declareAddressClaims(
  graph: Graph,
  inputs: Inputs,
  parsedEntries: Services['parsedEntries'],
): Services['addressClaims'] {
  return graph.derive('addressClaims', inputs.objects.ServiceEntry, (key, object, read, emit: Emit<AddressClaim>) => {
    const { name, namespace = '', creationTimestamp: createdAt = '' } = object.metadata;
    const { unaddressed: hosts = [], addresses = [] } = read.get(parsedEntries, key) ?? {};
    const held = allocatedAddresses(object);
    const fixed = addresses.map(({ address }) => address);
    if (hosts.length > 0 || held.length > 0 || fixed.length > 0)
      emit(key, { name, namespace, createdAt, hosts, held, fixed });
  });
}

function declareParsedImports(
  graph: Graph,
  inputs: Inputs,
  settings: Settings,
  serviceClaims: Collection<MeshService>,
  exports: Exports,
): Services['parsedImports'] {
  const addressesOfServices = indexOwners(graph, 'Services by address', [serviceClaims]);
  return graph.derive(
    'serviceImports',
    inputs.objects.ServiceImport,
    (key, object, read, emit: Emit<ReconciledImport>) => {
      const [source, { clusterId }] = [sourceOfKey(key), optionsOf(read, inputs)];
      if (!hasMulticlusterServices(read, inputs))
        return emit(key, { problems: [multiclusterServicesOff(source, object)] });
      const { name, namespace = '' } = object.metadata;
      const { trustDomain, defaultServiceExportTo } = settingOf(read, settings.visibility);
      const remote = source === clusterId ? undefined : source;
      const { service, problems } = reconcileServiceImport(object as ServiceImport, {
        ...{ source, trustDomain, defaultExportTo: defaultServiceExportTo },
        exported: read.get(exports.services, nameKey(namespace, name)),
        ownerOf: (address) => ownerOf(read, addressesOfServices, { namespace }, ownerKey(remote, address)),
      });
      emit(key, { problems, ...(service && { service: remote === undefined ? service : { ...service, remote } }) });
    },
  );
}

/** What ServiceEntries claim, without addresses that Services and ServiceImports of other namespaces own. */
function declareEntryClaims(
  graph: Graph,
  parsedEntries: Services['parsedEntries'],
  addressOwners: Services['addressOwners'],
): Collection<MeshService> {
  return graph.derive('entryClaims', parsedEntries, (key, { services }, read, emit: Emit<MeshService>) => {
    for (const service of services) {
      const isFree = (address: string): boolean => ownerOf(read, addressOwners, service, address) === undefined;
      const addresses = service.addresses.filter(isFree);
      const autoAddresses = service.autoAddresses.filter(isFree);
      // Without any address, it would take all unclaimed traffic.
      if (addresses.length > 0) emit(`ServiceEntry/${key}/${service.host}`, { ...service, addresses, autoAddresses });
    }
  });
}

/** All claims for a host in a namespace as one service, with its aliases and the ranges that it loses. */
function declareMerged(
  graph: Graph,
  inputs: Inputs,
  all: readonly Collection<MeshService>[],
  claims: Services['claims'],
  lostRanges: LostRanges,
): Services['services'] {
  const aliases = graph.index('aliases', all, (_, service) =>
    service.resolution === 'Alias' ? [service.externalName!] : [],
  );
  return graph.derive('services', claims, (key, members, read, emit: Emit<MeshService>) => {
    const joined = mergeClaims(members.map((member) => member.value));
    const merged = { ...joined, exportTo: exportsOf(joined, optionsOf(read, inputs).rootNamespace) };
    const found = merged.resolution === 'Alias' ? [] : aliasesOf(merged.host, (host) => read.group(aliases, host));
    const lost = lostRangesOf(merged, read, lostRanges);
    emit(key, {
      ...merged,
      ...(found.length > 0 && { aliases: found }),
      ...(lost.length > 0 && { lostRanges: lost }),
    });
  });
}

function indexOwners(graph: Graph, name: string, of: readonly Collection<MeshService>[]): Index<MeshService> {
  return graph.index(
    name,
    of,
    (_, { addresses, remote }) => addresses.filter(isSpecified).map((address) => ownerKey(remote, address)),
    byAge,
  );
}

const isSpecified = (address: string): boolean => address !== '0.0.0.0';

function allAddressesOf({ addresses, addressesIn = {}, autoAddresses }: MeshService): string[] {
  return [...new Set([...addresses, ...Object.values(addressesIn).flat(), ...autoAddresses].filter(isSpecified))];
}

/** Clusters may use the same addresses. Those of others are for their own proxies. */
const ownerKey = (remote: string | undefined, address: string): string =>
  remote === undefined ? address : `${remote}|${address}`;

/** The Service in another namespace that owns an address of a ServiceEntry or ServiceImport, which loses it. */
export function ownerOf(
  read: Reader,
  addressOwners: Index<MeshService>,
  entry: Pick<MeshService, 'namespace'>,
  address: string,
): MeshService | undefined {
  return read.group(addressOwners, address).find(({ value }) => value.namespace !== entry.namespace)?.value;
}

/** Namespaces that have services with these hosts; `*` if a wildcard may match services in any namespace. */
export function namespacesOf(read: Reader, services: Services, hosts: readonly string[]): string[] {
  if (hosts.some(isWildcard)) return ['*'];
  return [...new Set(hosts.flatMap((host) => read.group(services.byHost, host).map(({ value }) => value.namespace)))];
}

export const endpointKey = (namespace: string, address: string): string => nameKey(namespace, address);

/** Number among the shards of its namespace. */
export const numberOfShard = (shard: string): number => Number(parseNameKey(shard).name);

/** `namespace/shard` */
export function shardOf(service: Pick<MeshService, 'namespace' | 'host'>): string {
  return nameKey(service.namespace, `${spreadHash(service.host) % SHARDS}`);
}

/** Who sees two services. */
function inBoth(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a.includes('*')) return b;
  return b.includes('*') ? a : a.filter((client) => b.includes(client));
}

/** Aliases of a host, and their aliases; a loop ends where it began. */
function aliasesOf(host: string, pointingTo: (host: string) => readonly { value: MeshService }[]): Alias[] {
  const found = new Map<string, Alias>();
  const open: Pick<Alias, 'host' | 'exportTo'>[] = [{ host, exportTo: ['*'] }];
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const { value } of pointingTo(next.host))
      if (value.host !== host && !found.has(value.host)) {
        const exportTo = inBoth(next.exportTo, value.exportTo);
        const alias = { host: value.host, exportTo, namespace: value.namespace, origins: value.origins };
        found.set(value.host, alias);
        open.push(alias);
      }
  return [...found.values()].sort((a, b) => (a.host < b.host ? -1 : 1));
}
