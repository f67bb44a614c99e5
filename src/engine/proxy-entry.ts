import type { AdsServerOptions } from '../ads/transport/server-options.ts';
import { Admission, type AdmissionRefusal } from './admission.ts';
import { TypeDemand } from './type-demand.ts';
import { DemandBudgets, demandLimits } from './demand-budgets.ts';
import { Departures } from './departures.ts';
import type { EngineCore } from './core.ts';
import { ProxyClassBuilder } from './proxy-class-builder.ts';

export interface ProxyEntryOptions {
  readonly heapBytes: number;
  readonly notAdmitted: (refusal: AdmissionRefusal) => void;
}

export interface ProxyEntry {
  readonly admission: Admission;
  readonly events: Pick<AdsServerOptions['events'], 'admit' | 'connected' | 'isDeferred' | 'disconnected' | 'asked'>;
}

/** The way of proxies into the graph, and out of it: who is admitted, and when something is computed for them. */
export function proxyEntry(core: EngineCore, { heapBytes, notAdmitted }: ProxyEntryOptions): ProxyEntry {
  const { mesh, committer, clock } = core;
  const { graph } = mesh;
  const budgets = new DemandBudgets(
    () => demandLimits(heapBytes, mesh.services.size),
    () => clock.now(),
  );
  const departures = departuresOf(core, budgets, (stream) => kinds.gone(stream));
  const kinds = kindsOf(core, departures);
  const askers = new TypeDemand((stream, typeUrls) =>
    committer.write(mesh.inputs.asked.write(stream, typeUrls && { typeUrls })),
  );
  committer.onCommit(() => kinds.committed());
  const admission = new Admission({
    budgets,
    departures,
    preview: (proxy) => mesh.classes.preview(proxy),
    portsOf: (workload) => mesh.classes.portsOf(workload),
    refused: (refusal) => graph.contain('refusals', () => notAdmitted(refusal)),
  });
  return {
    admission,
    events: {
      admit: (proxy, peer) => admission.admit(proxy, peer),
      connected: (proxy) => kinds.connected(proxy, budgets.admitted(proxy.stream)?.demand.traits),
      isDeferred: (stream) => kinds.isDeferred(stream),
      disconnected: (proxy) =>
        graph.contain('departures', () => {
          askers.left(proxy.stream);
          kinds.disconnected(proxy.stream);
          departures.disconnected(proxy);
        }),
      asked: (stream, typeUrl) => askers.asked(stream, typeUrl),
    },
  };
}

function departuresOf(
  { mesh: { graph, inputs }, committer, clock, signal }: EngineCore,
  budgets: DemandBudgets,
  gone: (stream: string) => void,
): Departures {
  const contained = {
    now: () => clock.now(),
    after: (ms: number, fn: () => void) => clock.after(ms, () => graph.contain('departures', fn)),
  };
  return new Departures(inputs.proxies, (write) => committer.write(write), contained, {
    signal,
    forgotten(stream) {
      gone(stream);
      budgets.release(stream);
    },
    peerOf: (stream) => budgets.admitted(stream)?.peer,
  });
}

function kindsOf({ mesh, committer, clock }: EngineCore, departures: Departures): ProxyClassBuilder {
  const { inputs, classes } = mesh;
  return new ProxyClassBuilder({
    proxies: inputs.proxies,
    enter: (proxy) => departures.connected(proxy),
    leave: (stream) => committer.write(inputs.proxies.write(stream, undefined)),
    isBusy: () => committer.stats.pending > 0,
    isMade: (traits) => classes.isMade(traits),
    viewsOf: (proxy) => classes.viewsOf(proxy),
    proxiesWith: (views) => classes.proxiesWith(views),
    makeShards: committer.into(inputs.shardsMade),
    services: () => mesh.services.size,
    now: () => clock.now(),
  });
}
