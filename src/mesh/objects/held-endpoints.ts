import type { Pod, Service } from '../../api/core.ts';
import { refOf, sourceOfKey, withoutGeneration } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import { type LostEndpoint, type LostEndpoints, RELEASE_ANNOTATION } from '../../model/lost-endpoints.ts';
import { type EndpointContext, reconcileEndpointSlice } from '../../reconcilers/core/endpoint-slice.ts';
import { type KnownPod, isHeld, releaseMistake } from '../../settle/held-endpoints.ts';
import { type Inputs, siblingKey } from '../inputs.ts';
import type { Workloads } from './workloads.ts';

/** Endpoints that a list of the API server no longer had, while their Pods say otherwise. */
export interface HeldEndpoints {
  /** A part of {@link Inputs.lostEndpoints}, with the same keys. */
  readonly held: Collection<HeldPart>;
  /** By key of the Service. */
  readonly byService: Index<HeldPart>;
}

/** What is held of one object. */
export interface HeldPart extends LostEndpoints {
  /** About the annotation of the Service that releases them. */
  readonly problems: readonly Problem[];
}

/** @param hasSlices Whether there are slices for the Service. */
export function declareHeldEndpoints(
  graph: Graph,
  inputs: Inputs,
  workloads: Workloads,
  hasSlices: (read: Reader, key: string, lost: LostEndpoints) => boolean,
): HeldEndpoints {
  const { Pod, Service } = inputs.objects;
  const held = graph.derive('heldEndpoints', inputs.lostEndpoints, (key, lost, read, emit: Emit<HeldPart>) => {
    const service = read.get(Service, siblingKey(key, lost.namespace, lost.service)) as Service | undefined;
    if (service === undefined || (lost.legacy && hasSlices(read, key, lost))) return;
    const knownPod = ({ pod: { namespace, name }, address }: LostEndpoint): KnownPod | undefined => {
      const podKey = siblingKey(key, namespace, name);
      const pod = read.get(Pod, podKey) as Pod | undefined;
      if (pod === undefined) return undefined;
      const atAddress = read
        .group(workloads.podsByAddress, address)
        .filter((member) => sourceOfKey(member.key) === sourceOfKey(key)).length;
      return { pod, workload: read.get(workloads.pods, podKey), atAddress };
    };
    const endpoints = lost.endpoints.filter((endpoint) => isHeld(endpoint, service, knownPod(endpoint)));
    const problems = problemsOf(sourceOfKey(key), service);
    if (endpoints.length > 0) emit(key, { ...lost, endpoints, problems });
  });
  const byService = graph.index('held endpoints by service', held, (key, { namespace, service }) => [
    siblingKey(key, namespace, service),
  ]);
  return { held, byService };
}

/** As a slice would have them. */
export function reconcileHeld({ namespace, endpoints }: LostEndpoints, context: EndpointContext): readonly Endpoint[] {
  const none = { apiVersion: '', kind: 'EndpointSlice', metadata: { name: '', namespace } } as const;
  return endpoints.flatMap(({ address, ports, pod }) => {
    const addressType = address.includes(':') ? 'IPv6' : 'IPv4';
    const listed = [{ addresses: [address], targetRef: { kind: 'Pod', ...pod } }];
    return reconcileEndpointSlice({ ...none, addressType, ports, endpoints: listed }, context);
  });
}

function problemsOf(source: string, service: Service): readonly Problem[] {
  const message = releaseMistake(service);
  if (message === undefined) return [];
  const field = `metadata.annotations[${RELEASE_ANNOTATION}]`;
  return [{ object: withoutGeneration(refOf(source, service)), field, reason: 'Ineffective', message }];
}
