import type { Collection, Graph } from '../../cache/graph.ts';
import type { Inputs } from '../inputs.ts';
import { declareClaimedEndpoints } from './claimed-endpoints.ts';
import { type EndpointGroups, declareEndpointGroups } from './endpoint-groups.ts';
import type { EndpointList } from './endpoint-list.ts';
import { type ListedEndpoints, declareListedEndpoints } from './listed-endpoints.ts';
import type { Networks } from './networks.ts';
import type { PeerModesOf } from './peer-modes.ts';
import type { Services } from './services.ts';
import type { Workloads } from './workloads.ts';

export interface ServiceEndpoints extends EndpointGroups, Omit<ListedEndpoints, 'lists'> {
  readonly lists: readonly Collection<EndpointList>[];
}

export interface EndpointDeps {
  readonly services: Services;
  readonly workloads: Workloads;
  readonly peerModes: PeerModesOf;
  readonly networks: Networks;
}

export function declareEndpoints(graph: Graph, inputs: Inputs, deps: EndpointDeps): ServiceEndpoints {
  const listed = declareListedEndpoints(graph, inputs, deps);
  const claimed = declareClaimedEndpoints(graph, inputs, deps);
  const lists = [...listed.lists, claimed];
  return { ...listed, ...declareEndpointGroups(graph, inputs, lists, deps), lists };
}
