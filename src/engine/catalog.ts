import type { DiscoveryService, ResourceTypes } from '../ads/types.ts';
import { emptyAssignment } from '../envoy/endpoint/assignment.ts';
import type { Encoder } from '../envoy/encode/encoder.ts';
import { typeUrl } from '../envoy/encode/proto.ts';
import { leaf, resource } from '../envoy/encode/resource.ts';
import { HOST, NAME_TABLE } from '../model/named-host.ts';
import { PROXY_CONFIG } from '../envoy/tls/trust-bundle.ts';
import { type ServedType, servedTypes } from '../envoy/encode/served-types.ts';

/** A name table is sent to a client at most this often. Milliseconds. */
const TABLE_PACE_MS = 1_000;

/** The resource types that are served, in the order of a push. */
export function catalog(encoder: Encoder): ResourceTypes {
  const named = (shortName: ServedType) => ({ typeUrl: typeUrl(servedTypes[shortName]), shortName });
  return [
    { ...named('cds'), wildcard: true, fullState: true, isTried: true, service: serviceOf('Cluster') },
    {
      ...named('eds'),
      wildcard: false,
      fullState: false,
      behind: typeUrl(servedTypes.cds),
      whenAbsent: (name) =>
        resource(typeUrl(servedTypes.eds), name, leaf(emptyAssignment(name), [], [], { isUnready: true })),
      service: serviceOf('Endpoint'),
    },
    {
      ...named('lds'),
      wildcard: true,
      fullState: true,
      refersTo: typeUrl(servedTypes.cds),
      isTried: true,
      drains: true,
      service: serviceOf('Listener'),
    },
    {
      ...named('rds'),
      wildcard: false,
      fullState: false,
      refersTo: typeUrl(servedTypes.cds),
      isTried: true,
      whenAbsent: (name) => encoder.emptyRouteTable(name),
      service: serviceOf('Route'),
    },
    { ...named('sds'), wildcard: false, fullState: false, service: serviceOf('Secret') },
    // Between Istio's agents and the control plane: no Envoy asks for it.
    { typeUrl: PROXY_CONFIG, shortName: 'pcds', wildcard: true, fullState: true },
    // The whole table for every change: Istio's agents take nothing else.
    { typeUrl: NAME_TABLE, shortName: 'nds', wildcard: true, fullState: true, onDemand: true, paceMs: TABLE_PACE_MS },
    // The same host by host, for our own agent.
    { typeUrl: HOST, shortName: 'hosts', wildcard: true, fullState: true, onDemand: true },
  ];
}

/** A type's service under its name in Envoy's API, where all are named alike. */
export function serviceOf(kind: 'Cluster' | 'Endpoint' | 'Listener' | 'Route' | 'Secret'): DiscoveryService {
  return {
    name: `envoy.service.${kind.toLowerCase()}.v3.${kind}DiscoveryService`,
    stream: `Stream${kind}s`,
    delta: `Delta${kind}s`,
  };
}
