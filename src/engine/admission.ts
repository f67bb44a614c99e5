import type { ConnectedProxy } from '../ads/types.ts';
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
  /** How many ports such a workload serves now. */
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

/** Decides by its node whether a proxy is computed for. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #refusals: Record<DemandKind, number> = { traits: 0, scopes: 0, routers: 0, workloads: 0, places: 0 };

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** How many were refused, by the budget that was full. */
  get refusals(): Readonly<Record<DemandKind, number>> {
    return this.#refusals;
  }

  /** Why the proxy is refused; undefined: it is admitted. */
  admit(proxy: ConnectedProxy, peer: string): string | undefined {
    const { budgets, departures, preview, portsOf } = this.#options;
    const demand = demandOf(preview(proxy), portsOf);
    let full = budgets.admit(proxy.stream, peer, demand);
    if (full !== undefined) {
      // Proxies that are gone make room first.
      departures.giveUp(full.ofPeer ? peer : undefined);
      full = budgets.admit(proxy.stream, peer, demand);
    }
    if (full === undefined) return undefined;
    const { kind, ofPeer } = full;
    const reason = `proxies${ofPeer ? ' from this address' : ''} have too many different ${demandKinds[kind]}`;
    this.#refusals[kind]++;
    this.#options.refused({ kind, peer, nodeId: proxy.nodeId, reason });
    return reason;
  }
}

/** Nothing for a node that cannot be read: it is refused without being computed for. */
function demandOf(view: ResolvedProxy, portsOf: AdmissionOptions['portsOf']): Demand {
  if ('error' in view) return noDemand;
  const { scope, router, workload, isKnown, topology } = view;
  return {
    traits: traitsKey(scope.traits),
    scopes: scope.key,
    routers: router?.key,
    ...(isKnown || router !== undefined
      ? { workloads: undefined }
      : { workloads: workload.key, workloadSize: Math.ceil(portsOf(workload) / PORTS_OF_WORKLOAD) }),
    places: topology.locality === '' ? undefined : topology.locality,
  };
}
