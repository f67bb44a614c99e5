import type { ResourceTypes } from './ads/types.ts';
import { emptyAssignment } from './envoy/endpoint/assignment.ts';
import type { Encoder } from './envoy/encode/encoder.ts';
import { typeUrl } from './envoy/encode/proto.ts';
import { leaf, resource } from './envoy/encode/resource.ts';
import { PROXY_CONFIG } from './envoy/tls/trust-bundle.ts';
import { type ServedType, servedTypes } from './served-types.ts';

/** The resource types that are served, in the order of a push. */
export function catalog(encoder: Encoder): ResourceTypes {
  const named = (shortName: ServedType) => ({ typeUrl: typeUrl(servedTypes[shortName]), shortName });
  return [
    { ...named('cds'), wildcard: true, fullState: true },
    {
      ...named('eds'),
      wildcard: false,
      fullState: false,
      behind: typeUrl(servedTypes.cds),
      whenAbsent: (name) => resource(typeUrl(servedTypes.eds), name, leaf(emptyAssignment(name), [])),
    },
    {
      ...named('lds'),
      wildcard: true,
      fullState: true,
      refersTo: typeUrl(servedTypes.cds),
      drains: true,
    },
    {
      ...named('rds'),
      wildcard: false,
      fullState: false,
      refersTo: typeUrl(servedTypes.cds),
      whenAbsent: (name) => encoder.emptyRouteTable(name),
    },
    {
      ...named('sds'),
      wildcard: false,
      fullState: false,
      service: {
        name: 'envoy.service.secret.v3.SecretDiscoveryService',
        stream: 'StreamSecrets',
        delta: 'DeltaSecrets',
      },
    },
    // Between Istio's agents and the control plane: no Envoy asks for it.
    { typeUrl: PROXY_CONFIG, shortName: 'pcds', wildcard: true, fullState: true },
  ];
}
