import { bytesOf } from '../../src/ads/wire/bytes-of.ts';
import { type EncodedResource, leavesOf } from '../../src/ads/store/resource.ts';
import { createRoot } from '../../src/envoy/encode/proto-root.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { type Json, type Protos, typeOfUrl } from '../../src/envoy/encode/proto.ts';
import { withheldSecret } from '../../src/envoy/tls/secrets.ts';
import type { Snapshot } from '../../src/debug/snapshot.ts';
import { createRules } from '../protos/validate-rules.ts';
import { testProtos } from './mesh.ts';

/** Finds what no proxy may ever be sent, whatever the objects say; one line per finding. */
export type CheckSound = (snapshot: Snapshot) => string[];

/** What is known about a resource on its own. */
interface Facts {
  readonly findings: readonly string[];
  /** Clusters that its message names. */
  readonly clusters: ReadonlySet<string>;
  /** Those of a listener. */
  readonly addresses: readonly string[];
}

/** Takes about 300 ms: call it once per test file. Resources that were seen before are not inspected again. */
/** Whether a proxy may have a Secret is a question of its own, and a withheld one it never gets. */
function isDue(name: string): boolean {
  return name !== withheldSecret.name && !/^(kubernetes|kubernetes-gateway|configmap):\/\//.test(name);
}

export function createCheckSound(protos: Protos = testProtos()): CheckSound {
  const inspect = createInspector(protos);
  const known = new Map<string, Facts>();
  const factsOf = (resource: EncodedResource): Facts => {
    const key = `${resource.typeUrl} ${resource.name} ${resource.version}`;
    const facts = known.get(key) ?? inspect(resource);
    known.set(key, facts);
    return facts;
  };
  return ({ cds, eds, lds, rds, sds, missing }) => {
    const given = new Set(cds.map(({ name }) => name));
    return [
      ...missing.filter(isDue).map((name) => `${name} is referred to, but not given`),
      ...[cds, eds, lds, rds, sds].flatMap((resources) => repeated(resources.map(({ name }) => name))),
      // Envoy rejects two listeners with the same address, bound or not.
      ...repeated(lds.flatMap((resource) => factsOf(resource).addresses)),
      ...[...cds, ...eds, ...lds, ...rds, ...sds].flatMap((resource) => {
        const { findings, clusters } = factsOf(resource);
        return [...findings, ...clusterFindings(resource, clusters, given)].map(
          (line) => `${nameOfType(resource)} ${resource.name}: ${line}`,
        );
      }),
    ];
  };
}

function createInspector(protos: Protos): (resource: EncodedResource) => Facts {
  const rules = createRules();
  const unknown = createFindUnknown();
  return ({ typeUrl, name, body }) => {
    const type = typeOfUrl(typeUrl);
    const bytes = bytesOf(body);
    const json = protos.toJson(type, bytes);
    return {
      findings: [
        ...rules(type, bytes).map(({ path, message }) => `${path} ${message}`),
        ...unknown(type, bytes),
        ...otherName(json, name),
        ...(type === types.route ? repeatedIn(json as unknown as TableJson) : []),
      ],
      clusters: clustersIn(json),
      addresses: type === types.listener ? addressesOf(json as unknown as ListenerJson) : [],
    };
  };
}

function nameOfType({ typeUrl }: EncodedResource): string {
  return typeUrl.slice(typeUrl.lastIndexOf('.') + 1);
}

function repeated(names: readonly string[]): string[] {
  const seen = new Set<string>();
  return names.filter((name) => seen.size === seen.add(name).size).map((name) => `${name} is there twice`);
}

interface AddressJson {
  readonly socketAddress?: { readonly address: string; readonly portValue: number };
  readonly pipe?: { readonly path: string };
}

interface ListenerJson {
  /** Absent for gRPC's own clients, which do not listen. */
  readonly address?: AddressJson;
  readonly additionalAddresses?: readonly { readonly address: AddressJson }[];
}

function addressesOf({ address, additionalAddresses = [] }: ListenerJson): string[] {
  const own = address === undefined ? [] : [address];
  return [...own, ...additionalAddresses.map((more) => more.address)].map(({ socketAddress, pipe }) =>
    socketAddress === undefined ? (pipe?.path ?? '') : `${socketAddress.address} port ${socketAddress.portValue}`,
  );
}

interface TableJson {
  readonly virtualHosts?: readonly { readonly name: string; readonly domains: readonly string[] }[];
}

/** Envoy rejects a route table that contains a domain or a virtual host name twice. */
function repeatedIn({ virtualHosts = [] }: TableJson): string[] {
  const domains = virtualHosts.flatMap((host) => host.domains.map((domain) => domain.toLowerCase()));
  return [...repeated(virtualHosts.map((host) => host.name)), ...repeated(domains)];
}

function otherName(json: Json, name: string): string[] {
  const own = json as { readonly name?: string; readonly clusterName?: string };
  return (own.clusterName ?? own.name) === name ? [] : [`calls itself ${String(own.clusterName ?? own.name)}`];
}

/** A resource must declare exactly the clusters in its message, and the proxy must be given all of them. */
function clusterFindings(resource: EncodedResource, named: ReadonlySet<string>, given: ReadonlySet<string>): string[] {
  const said = new Set<string>();
  for (const leaf of leavesOf(resource.body)) for (const name of leaf.clusters) said.add(name);
  return [
    ...[...named].filter((name) => !given.has(name)).map((name) => `names the cluster ${name}, which is not given`),
    ...[...named].filter((name) => !said.has(name)).map((name) => `names the cluster ${name} without saying so`),
    ...[...said].filter((name) => !named.has(name)).map((name) => `says that it names the cluster ${name}`),
  ];
}

/** Clusters that traffic is sent to: those of routes, mirrors, weights and TCP proxies. */
function clustersIn(json: Json, found = new Set<string>()): Set<string> {
  if (typeof json !== 'object' || json === null) return found;
  if (Array.isArray(json)) {
    for (const item of json as readonly Json[]) clustersIn(item, found);
    return found;
  }
  for (const [key, value] of Object.entries(json)) {
    if (key === 'cluster' && typeof value === 'string') found.add(value);
    // A service that authorizes; the agent, which is asked for secrets, has its cluster in the bootstrap.
    if (key === 'clusterName' && typeof value === 'string' && 'authority' in json) found.add(value);
    if (key === 'weightedClusters')
      for (const { name } of (value as { readonly clusters: readonly { readonly name: string }[] }).clusters)
        found.add(name);
    clustersIn(value, found);
  }
  return found;
}

/** Fields unknown to the message's type are lost when the message is encoded again. */
function createFindUnknown(): (type: string, bytes: Uint8Array) => string[] {
  const root = createRoot();
  const find = (name: string, bytes: Uint8Array, path: string): string[] => {
    const type = root.lookupType(name);
    const message = type.decode(bytes);
    const lost = bytes.length - type.encode(message).finish().length;
    return [...(lost === 0 ? [] : [`${path || name} has unknown fields`]), ...findIn(message, path)];
  };
  const findIn = (value: unknown, path: string): string[] => {
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
    const { typeUrl, value: packed } = value as { readonly typeUrl?: unknown; readonly value?: unknown };
    if (typeof typeUrl === 'string' && packed instanceof Uint8Array) return find(typeOfUrl(typeUrl), packed, path);
    return Object.entries(value).flatMap(([key, item]) => findIn(item, path === '' ? key : `${path}.${key}`));
  };
  return (type, bytes) => find(type, bytes, '');
}
