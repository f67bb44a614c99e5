import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Workload } from '../../model/endpoint.ts';
import { isClusterSetHost } from '../../model/exported-service.ts';
import { type MeshService, exportsOf } from '../../model/service.ts';
import { mostEndpoints } from '../../reconcilers/core/endpoint-slice.ts';
import { entryEndpoints, selectedEntries } from '../../reconcilers/service-entry/endpoints.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type EndpointList, exportOf, ineffective } from './endpoint-list.ts';
import type { Services } from './services.ts';
import { type Workloads, selectedWorkloads } from './workloads.ts';

export interface ClaimedEndpointDeps {
  readonly services: Services;
  readonly workloads: Workloads;
}

/** What Services and ServiceEntries select, and what ServiceEntries list themselves. By service. */
export function declareClaimedEndpoints(
  graph: Graph,
  inputs: Inputs,
  { services, workloads }: ClaimedEndpointDeps,
): Collection<EndpointList> {
  return graph.derive('claimedEndpoints', services.services, (key, service, read, emit: Emit<EndpointList>) => {
    const cluster = optionsOf(read, inputs).clusterId;
    // Services select entries of their own cluster only; ServiceEntries select workloads of all.
    const claims =
      service.registry === 'External' ? [service] : read.group(services.claims, key).map(({ value }) => value);
    const ofKind = claims.flatMap((claim) => selectedBy(read, claim, claim.remote ?? cluster, workloads));
    const able = ofKind.filter((workload) => isForAll(service, workload, optionsOf(read, inputs).rootNamespace));
    const picked = able.slice(0, Math.max(1, Math.floor(mostEndpoints / Math.max(1, service.ports.length))));
    const endpoints =
      service.registry === 'External'
        ? entryEndpoints(service, cluster, picked)
        : claims.flatMap((claim) =>
            selectedEntries(
              claim,
              picked.filter((workload) => workload.cluster === (claim.remote ?? cluster)),
            ),
          );
    const message = `selects ${able.length} workloads with ${service.ports.length} ports each; only the first ${picked.length} count, because at most ${mostEndpoints} endpoints are allowed. Use fewer ports.`;
    const field = service.registry === 'External' ? 'spec.workloadSelector' : 'spec.selector';
    const problems =
      picked.length === able.length ? [] : service.origins.map((object) => ineffective(object, field, message));
    if (able.length < ofKind.length) {
      const local = `selects ${ofKind.length - able.length} WorkloadEntries that point to each client's own proxy (a unix socket, or a port from 15000 to 15099 on loopback). They are ignored where other namespaces see the service; export it to "." only.`;
      problems.push(...service.origins.map((object) => ineffective(object, field, local)));
    }
    if (endpoints.length === 0 && problems.length === 0) return;
    const exported =
      service.registry === 'External' || isClusterSetHost(service.host)
        ? {}
        : exportOf(read, inputs, services.exports, {
            source: cluster,
            namespace: service.namespace,
            name: service.name,
          });
    emit(key, { service: key, ...exported, endpoints, origins: [], problems });
  });
}

function selectedBy(
  read: Reader,
  { registry, namespace, selector }: MeshService,
  cluster: string,
  workloads: Workloads,
): readonly Workload[] {
  const selected = selector === undefined ? [] : selectedWorkloads(read, workloads, namespace, selector);
  return registry === 'External'
    ? selected
    : selected.filter((workload) => workload.kind === 'WorkloadEntry' && workload.cluster === cluster);
}

/** A client's own proxy is not an endpoint for clients in other namespaces. */
function isForAll(service: MeshService, { addresses, ports }: Workload, rootNamespace: string): boolean {
  const endpoints = addresses.map((address) => ({ address, ports, servicePorts: service.ports }));
  return exportsOf({ ...service, endpoints }, rootNamespace) === service.exportTo;
}
