import {
  type Client,
  type DestinationName,
  type DestinationTarget,
  type Targets,
  destinationKey,
} from '../../model/client.ts';
import type { EndpointSummary } from '../../model/endpoint.ts';
import { type AgedClaim, type ListenerClaim, sortClaims } from '../../model/listener.ts';
import type { MeshService, ServicePort } from '../../model/service.ts';
import { type Traits, anyTraits } from '../../model/traits.ts';
import { reconcileMeshConfig } from '../../reconcilers/mesh-config/mesh-config.ts';
import { type ClaimInput, claimsOf } from '../../settle/outbound-claims.ts';
import type { Listener } from '../gen/types.gen.ts';
import { Encoder } from '../encode/encoder.ts';
import { type Protos, createProtos } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

export const protos: Protos = createProtos();
export const encoder = new Encoder(protos);

export const defaultSettings = reconcileMeshConfig(undefined).config.listeners;

export function traitsOf(traits: Partial<Traits> = {}): Traits {
  return { ...anyTraits, agent: true, ...traits };
}

export function clientOf(traits: Partial<Traits> = {}, client: Partial<Client> = {}): Client {
  return {
    namespace: 'shop',
    domainSuffix: 'cluster.local',
    traits: traitsOf(traits),
    matched: [],
    ...client,
  };
}

export function port(number: number, protocol: ServicePort['protocol'], name = 'p'): ServicePort {
  return { name, number, protocol };
}

/** A Kubernetes Service in namespace `shop`. */
export function serviceOf(
  name: string,
  ports: readonly ServicePort[],
  service: Partial<MeshService> = {},
): MeshService {
  return {
    host: `${name}.shop.svc.cluster.local`,
    namespace: 'shop',
    name,
    createdAt: '',
    registry: 'Kubernetes',
    resolution: 'ClientSideLB',
    ports,
    addresses: ['10.96.0.1'],
    autoAddresses: [],
    exportTo: ['*'],
    meshExternal: false,
    persistentSession: false,
    translatesPorts: true,
    endpoints: [],
    subjectAltNames: [],
    nodeLocal: false,
    aliases: [],
    raceConnect: false,
    origins: [],
    ...service,
  };
}

/** A host of a ServiceEntry without addresses. */
export function entryOf(host: string, ports: readonly ServicePort[], service: Partial<MeshService> = {}): MeshService {
  return serviceOf(host, ports, { host, registry: 'External', addresses: ['0.0.0.0'], meshExternal: true, ...service });
}

export const someEndpoints: EndpointSummary = {
  identities: [],
  plaintext: true,
  addresses: [],
  dnsEndpoints: [],
};

/** Where a destination leads from a listener. */
export type Lookup = (destination: DestinationName, listenerPort: number) => DestinationTarget;

export function targetsBy(lookup: Lookup, destinations: readonly DestinationName[], listenerPort: number): Targets {
  return new Map(destinations.map((each) => [destinationKey(each), lookup(each, listenerPort)]));
}

/** Every destination exists, at its own port or that of the listener. */
export const lookupAll: Lookup = ({ host, subset, port: written }, listenerPort) => {
  const found = serviceOf(host, [], { host });
  if (written === undefined && listenerPort === 0)
    return { kind: 'missing', what: 'port', cluster: `outbound|0|${subset}|${host}` };
  const number = written ?? listenerPort;
  return { kind: 'cluster', cluster: `outbound|${number}|${subset}|${host}`, service: found, port: number };
};

export function claimsOfService(service: MeshService, input: Partial<ClaimInput> = {}): ListenerClaim[] {
  return service.ports.flatMap((each) =>
    claimsOf({
      service,
      port: each,
      client: clientOf(),
      summary: someEndpoints,
      routes: [],
      targets: new Map(),
      settings: defaultSettings,
      ...input,
    }),
  );
}

export function agedClaimsOf(services: readonly MeshService[], input: Partial<ClaimInput> = {}): AgedClaim[] {
  return sortClaims(services.flatMap((age) => claimsOfService(age, input).map((claim) => ({ rank: 2, age, claim }))));
}

/** The protobuf JSON of a listener, as Envoy would print it. */
export function printListener(listener: Listener): Record<string, unknown> {
  return protos.toJson(types.listener, protos.encode(types.listener, listener)) as Record<string, unknown>;
}
