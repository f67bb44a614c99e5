import { isDeepStrictEqual } from 'node:util';
import type { Patches } from '../clients/patch-sets.ts';
import type { EncodedResource } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { sameResource } from '../../envoy/encode/resource.ts';
import { type MeshService, type ServicePort, servedPort } from '../../model/service.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import type { ServiceEndpoints } from '../objects/endpoints.ts';
import type { Networks } from '../objects/networks.ts';
import type { Inputs } from '../inputs.ts';
import type { HasFailed } from './patching.ts';
import type { Place } from './places.ts';
import type { Proxies } from '../clients/proxies.ts';
import type { PeerModesOf } from '../objects/peer-modes.ts';
import { type Rules, ruleOf } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import type { Settings } from '../settings.ts';
import type { ServiceView, Views } from '../clients/views.ts';

/** The resources of one service port under one rule, shared by all views that see it so. */
export interface ResourceSet extends HasFailed {
  readonly resources: readonly { readonly qualifier: string; readonly resource: EncodedResource }[];
}

export interface ClusterDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly endpoints: ServiceEndpoints;
  readonly networks: Networks;
  readonly rules: Rules;
  readonly peerModes: PeerModesOf;
  readonly proxies: Proxies;
  readonly views: Views;
  readonly destinationViews: Collection<ServiceView>;
  readonly patches: Patches | undefined;
  readonly encoder: Encoder;
}

export function sameSet(a: ResourceSet, b: ResourceSet): boolean {
  return (
    a.resources.length === b.resources.length &&
    isDeepStrictEqual(a.failed, b.failed) &&
    a.resources.every((x, i) => {
      const y = b.resources[i]!;
      return x.qualifier === y.qualifier && sameResource(x.resource, y.resource);
    })
  );
}

/** A resource for all proxies at a place. */
export function at(place: Place, made: EncodedResource): ResourceSet['resources'] {
  return place.qualifiers.map((qualifier) => ({ qualifier, resource: made }));
}

/** TCP and UDP ports may have the same number. */
export const portsOf = (view: ServiceView): string[] => [...new Set(view.clusterPorts)].map(String);

/** What some views need from a service: its resources are not rebuilt when one more view needs the same. */
export interface Demand<T> {
  /** `namespace/host` */
  readonly service: string;
  /** Id; empty: none. */
  readonly rule: string;
  readonly port: string;
  /** The facts about clients that it depends on. */
  readonly client: T;
}

/** The demands of all views, each once, by the given key. */
export function declareDemands<T>(
  graph: Graph,
  name: string,
  sources: readonly Collection<ServiceView>[],
  of: { readonly keyOf: (view: ServiceView, port: string) => string; readonly clientOf: (view: ServiceView) => T },
): Collection<Demand<T>> {
  const views = graph.index(`views by ${name}`, sources, (_, view) =>
    portsOf(view).map((port) => of.keyOf(view, port)),
  );
  return graph.derive(`demands of ${name}s`, views, (key, [first], _, emit: Emit<Demand<T>>) => {
    const { service, rule } = first.value;
    emit(key, { service, rule, port: portOfKey(key), client: of.clientOf(first.value) });
  });
}

export const portOfKey = (key: string): string => key.slice(key.lastIndexOf('|') + 1);

export interface RuledPort {
  readonly service: MeshService;
  readonly port: ServicePort;
  readonly rule: DestinationRuleModel | undefined;
}

/** The port, as seen by the clients that need it. */
export function ruledPortOf(
  demand: Demand<unknown>,
  read: Reader,
  deps: Pick<ClusterDeps, 'services' | 'rules'>,
): RuledPort | undefined {
  const service = read.get(deps.services.services, demand.service);
  const port = service && servedPort(service.ports, Number(demand.port));
  if (service === undefined || port === undefined) return undefined;
  return { service, port, rule: ruleOf(read, deps.rules, demand.rule, service) };
}
