import type { ObjectRef } from '../../api/object.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import type { FilterChain } from '../../envoy/gen/types.gen.ts';
import { grpcServerChain, grpcServerListener } from '../../envoy/listener/grpc-server.ts';
import { type SecurityFilters, isTooLarge, noSecurity, refuseAll } from '../../envoy/security/authorization.ts';
import { modeOfGrpcServer } from '../../model/peer-authentication.ts';
import { wholeObjects } from '../../model/provenance.ts';
import type { InboundTargets } from '../../settle/inbound.ts';
import type { Proxies } from '../clients/proxies.ts';
import type { PoliciesOfWorkloads } from '../clients/workload-policies.ts';
import type { WorkloadClasses } from '../clients/workload-classes.ts';
import { grpcServerList, inboundList } from '../lists.ts';
import { chainsOf } from './inbounds.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import { type SecurityFilterDeps, stepsForGrpc } from './security-filters.ts';

export interface GrpcServerDeps extends SecurityFilterDeps {
  readonly proxies: Proxies;
  readonly workloadClasses: WorkloadClasses;
  readonly workloadPolicies: PoliciesOfWorkloads;
  readonly securityFilters: Collection<SecurityFilters>;
  readonly encoder: Encoder;
}

interface ServerPort {
  readonly port: number;
  readonly chain: FilterChain;
  /** The Services and policies behind it. */
  readonly origins: readonly ObjectRef[];
}

/** Most gRPC servers listen on all addresses, and so replicas share what they get. */
const ANY_ADDRESS = ['0.0.0.0', '::'];

/** What gRPC servers without an Envoy ask for: a listener for the address and port that each of them listens on. */
export function declareGrpcServers(
  graph: Graph,
  targets: Collection<InboundTargets>,
  deps: GrpcServerDeps,
): readonly Members[] {
  const ports = graph.derive('grpcServers', targets, (key, served, read, emit: Emit<readonly ServerPort[]>) => {
    const one = read.get(deps.workloadClasses.classes, key);
    const policies = read.get(deps.workloadPolicies.ofClass, key);
    if (one?.traits.family !== 'grpc' || policies === undefined) return;
    const set = policies.set === '' ? undefined : read.get(deps.policySets, policies.set);
    const { steps, origins: asked } = set === undefined ? { steps: [], origins: [] } : stepsForGrpc(set, read, deps);
    // As large as the filters of an Envoy, about: whoever has these in too many listeners is told the same.
    const isClosed = isTooLarge(read.get(deps.securityFilters, policies.set) ?? noSecurity, chainsOf(served.targets));
    const authorization = isClosed ? [refuseAll] : steps;
    emit(
      key,
      served.targets.map(({ port, origins }): ServerPort => {
        const isMutualTls =
          modeOfGrpcServer(policies.peers.ports[port] ?? policies.peers.mode, one.labels) === 'STRICT';
        const chain = grpcServerChain({ port, isMutualTls, authorization });
        return { port, chain, origins: [...origins, ...asked] };
      }),
    );
  });
  const emitListeners = (
    emit: Emit<Member>,
    list: string,
    all: readonly ServerPort[],
    addresses: readonly string[],
  ) => {
    for (const { port, chain, origins } of all)
      for (const address of addresses) {
        const listener = grpcServerListener(address, port, chain);
        emitMember(
          emit,
          list,
          deps.encoder.listener(listener, [], () => wholeObjects(origins)),
        );
      }
  };
  return [
    graph.derive(
      'grpcServers.anyAddress',
      ports,
      (key, all, _, emit: Emit<Member>) => emitListeners(emit, inboundList(key), all, ANY_ADDRESS),
      sameMember,
    ),
    graph.derive(
      'grpcServers.ownAddress',
      deps.proxies.resolved,
      (stream, proxy, read, emit: Emit<Member>) => {
        if ('error' in proxy || proxy.scope.traits.family !== 'grpc') return;
        const all = read.get(ports, proxy.workload.key) ?? [];
        emitListeners(emit, grpcServerList(stream), all, proxy.addresses);
      },
      sameMember,
    ),
  ];
}
