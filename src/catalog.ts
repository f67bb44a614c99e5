import type { ResourceTypes } from './ads/types.ts';
import { emptyAssignment } from './envoy/assignment.ts';
import { types } from './envoy/proto-types.ts';
import { type Protos, typeUrl } from './envoy/proto.ts';
import { leaf, resource } from './envoy/resource.ts';
import { emptyRouteConfiguration } from './envoy/route-configuration.ts';

/** The resource types that are served, in the order in which a push sends them. */
export function catalog(protos: Protos): ResourceTypes {
  return [
    { typeUrl: typeUrl(types.cluster), shortName: 'cds', wildcard: true, fullState: true },
    {
      typeUrl: typeUrl(types.endpoint),
      shortName: 'eds',
      wildcard: false,
      fullState: false,
      behind: typeUrl(types.cluster),
      whenAbsent: (name) => resource(typeUrl(types.endpoint), name, leaf(emptyAssignment(name), [], [])),
    },
    {
      typeUrl: typeUrl(types.listener),
      shortName: 'lds',
      wildcard: true,
      fullState: true,
      refersTo: typeUrl(types.cluster),
      drains: true,
    },
    {
      typeUrl: typeUrl(types.route),
      shortName: 'rds',
      wildcard: false,
      fullState: false,
      refersTo: typeUrl(types.cluster),
      whenAbsent: (name) =>
        resource(typeUrl(types.route), name, leaf(protos.encode(types.route, emptyRouteConfiguration(name)), [], [])),
    },
  ];
}
