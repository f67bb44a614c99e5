import { type Clock, aborted } from '../base/clock.ts';
import type { Budget } from '../kube/client/budget.ts';
import type { KubeApi } from '../kube/client/client.ts';
import { injectionConfiguration } from '../kube/writing/injection-configuration.ts';
import type { Log } from '../kube/client/log.ts';
import type { Outages } from '../kube/client/outages.ts';
import { RootCertificates } from '../kube/writing/root-certificates.ts';
import type { WebhookConfiguration } from '../kube/writing/webhook-configuration.ts';
import type { Mesh } from '../mesh.ts';

/**
 * The annotation of the root namespace of another cluster that lists which clusters' control planes may write there,
 * separated by commas; `*`: all. As in Istio.
 */
export const CONTROLLED_BY = 'topology.istio.io/controlPlaneClusters';

export interface RootDistributionOptions {
  /** PEM; empty until there is an authority. */
  readonly roots: () => string;
  /** The configuration by which API servers ask us about Pods; absent: somebody else keeps the roots in it. */
  readonly injectionWebhook?: string;
  readonly namespaces: Pick<Mesh['clusters']['namespaces'], 'of' | 'get'>;
  /** Id of the own cluster. */
  readonly clusterId: string;
  readonly rootNamespace: string;
}

/** What writes to one cluster. */
export interface RootWriterOptions {
  readonly cluster: string;
  /** Whether the namespace is not one of the mesh. */
  readonly leavesOut: (namespace: string) => boolean;
  readonly api: KubeApi;
  /** For what is kept of the cluster. */
  readonly budget: Budget;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  readonly signal: AbortSignal;
}

interface Writer {
  readonly cluster: string;
  readonly certificates: RootCertificates;
  readonly webhook: WebhookConfiguration | undefined;
  readonly signal: AbortSignal;
  /** While it writes. */
  writing: { readonly end: AbortController; readonly ended: Promise<void> } | undefined;
}

/**
 * Keeps the roots of the mesh in the namespaces and the injection webhook of other clusters while this replica leads: of
 * those whose root namespace says that this control plane may. Two control planes that both write would undo each other's
 * work without end. A rotation does not wait for other clusters: they would decide how long it takes.
 */
export class RootDistribution {
  readonly #options: RootDistributionOptions;
  readonly #writers = new Set<Writer>();
  #term: AbortSignal | undefined;

  constructor(options: RootDistributionOptions) {
    this.#options = options;
  }

  /** See {@link RootDistributionOptions}. */
  get injectionWebhook(): string | undefined {
    return this.#options.injectionWebhook;
  }

  /** Whether this control plane may write there. */
  controls(cluster: string): boolean {
    const { namespaces, rootNamespace, clusterId } = this.#options;
    const text = namespaces.get(cluster, rootNamespace)?.metadata.annotations?.[CONTROLLED_BY] ?? '';
    return text.split(',').some((each) => ['*', clusterId].includes(each.trim()));
  }

  /** Writes over this connection. Resolves once its signal has fired, and nothing is written any more. */
  async join({ cluster, leavesOut, signal, budget, ...shared }: RootWriterOptions): Promise<void> {
    const { namespaces, roots, injectionWebhook: name } = this.#options;
    const parts = { ...shared, roots, foreign: { budget } };
    const certificates = new RootCertificates({
      ...parts,
      namespaces: () => namespaces.of(cluster).filter((name) => !leavesOut(name)),
      isWanted: (name) => namespaces.get(cluster, name) !== undefined && !leavesOut(name),
    });
    const webhook = name === undefined ? undefined : injectionConfiguration({ ...parts, name });
    const writer: Writer = { cluster, certificates, webhook, signal, writing: undefined };
    this.#writers.add(writer);
    this.#review(writer);
    await aborted(signal);
    this.#writers.delete(writer);
    await writer.writing?.ended;
  }

  /** This replica leads until the signal fires. */
  lead(term: AbortSignal): void {
    this.#term = term;
    for (const writer of this.#writers) this.#review(writer);
  }

  /** Namespaces of a cluster have come, gone or changed. */
  changed(cluster: string, namespaces: readonly string[]): void {
    for (const writer of this.#writers) {
      if (writer.cluster !== cluster) continue;
      this.#review(writer);
      writer.certificates.changed(namespaces);
    }
  }

  /** The roots, or what is selected of all clusters, have changed. */
  changedAll(): void {
    for (const { certificates, webhook } of this.#writers) {
      certificates.changed();
      webhook?.changed();
    }
  }

  #review(writer: Writer): void {
    const { cluster, certificates, webhook, signal } = writer;
    const term = this.#term;
    const isWanted = term?.aborted === false && !signal.aborted && this.controls(cluster);
    if (!isWanted) {
      writer.writing?.end.abort();
      writer.writing = undefined;
      return;
    }
    if (writer.writing !== undefined && !writer.writing.end.signal.aborted) return;
    const end = new AbortController();
    const stop = (): void => end.abort();
    const until = AbortSignal.any([signal, term]);
    until.addEventListener('abort', stop, { once: true });
    const running = [certificates.lead(end.signal), webhook?.run({ signal: end.signal }) ?? Promise.resolve()];
    const ended = Promise.all(running).then(() => until.removeEventListener('abort', stop));
    writer.writing = { end, ended };
  }
}
