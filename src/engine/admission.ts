import type { ConnectedProxy, Denial } from '../ads/types.ts';
import {
  type Demand,
  type DemandBudgets,
  type DemandKind,
  PORTS_OF_WORKLOAD,
  demandKinds,
  noDemand,
} from './demand-budgets.ts';
import type { Departures } from './departures.ts';
import type { ResolvedProxy } from '../mesh/clients/proxies.ts';
import type { WorkloadClass } from '../mesh/clients/workload-classes.ts';
import { traitsKey } from '../model/traits.ts';

export interface AdmissionOptions {
  readonly budgets: DemandBudgets;
  readonly departures: Pick<Departures, 'giveUp'>;
  readonly preview: (proxy: ConnectedProxy) => ResolvedProxy;
  /** How many ports a workload of this class serves now. */
  readonly portsOf: (workload: WorkloadClass) => number;
  readonly refused: (refusal: AdmissionRefusal) => void;
}

/** A proxy that exceeds a budget. */
export interface AdmissionRefusal {
  readonly kind: DemandKind;
  readonly peer: string;
  readonly nodeId: string;
  readonly reason: string;
}

/** Decides, from a proxy's node, whether anything is computed for it. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #refusals: Record<DemandKind, number> = { traits: 0, scopes: 0, routers: 0, workloads: 0, places: 0 };

  #denied = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** How many claimed to be somebody else than their credential says. */
  get denied(): number {
    return this.#denied;
  }

  /** How many were refused, by the budget that was full. */
  get refusals(): Readonly<Record<DemandKind, number>> {
    return this.#refusals;
  }

  /** Why the proxy is refused; undefined if it is admitted. */
  admit(proxy: ConnectedProxy, peer: string): Denial | undefined {
    const { budgets, departures, preview, portsOf } = this.#options;
    const view = preview(proxy);
    const denied = claimProblem(proxy, view);
    if (denied !== undefined) {
      this.#denied++;
      return { code: 'PERMISSION_DENIED', message: denied };
    }
    const demand = demandOf(view, portsOf);
    let full = budgets.admit(proxy.stream, peer, demand);
    // Departed proxies make room first, except for traits, which go on counting for a while.
    if (full !== undefined && full.kind !== 'traits') {
      departures.giveUp(full.ofPeer ? peer : undefined);
      full = budgets.admit(proxy.stream, peer, demand);
    }
    if (full === undefined) return undefined;
    const { kind, ofPeer } = full;
    const reason = `proxies${ofPeer ? ' from this address' : ''} have too many different ${demandKinds[kind]}`;
    this.#refusals[kind]++;
    this.#options.refused({ kind, peer, nodeId: proxy.nodeId, reason });
    return { code: 'RESOURCE_EXHAUSTED', message: reason };
  }
}

/** What a node says about itself must be what its credential says, as in Istio. */
function claimProblem({ identity, metadata }: ConnectedProxy, view: ResolvedProxy): string | undefined {
  if (identity === undefined || 'error' in view) return undefined;
  const account = metadata['SERVICE_ACCOUNT'];
  if (view.claimsOtherCluster) return 'the cluster of the node (CLUSTER_ID) is not the one of its credential';
  if (view.workload.namespace !== identity.namespace)
    return 'the namespace of the node is not the one of its credential';
  if (account !== undefined && account !== '' && account !== identity.serviceAccount)
    return 'the service account of the node is not the one of its credential';
  return undefined;
}

/** No demand for a node that cannot be read: it is refused, and nothing is computed for it. */
function demandOf(view: ResolvedProxy, portsOf: AdmissionOptions['portsOf']): Demand {
  if ('error' in view) return noDemand;
  const { scope, router, workload, isKnown, claimedPlace } = view;
  return {
    traits: traitsKey(scope.traits),
    scopes: scope.key,
    routers: router?.key,
    ...(isKnown || router !== undefined
      ? { workloads: undefined }
      : { workloads: workload.key, workloadSize: Math.ceil(portsOf(workload) / PORTS_OF_WORKLOAD) }),
    places: claimedPlace,
  };
}
