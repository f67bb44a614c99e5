import type { Clock } from '../base/clock.ts';
import { EtcdStore } from '../clustermesh/etcd-store.ts';
import { Exporter } from '../clustermesh/exporter.ts';
import { failureOf, printFailure } from '../clustermesh/advice.ts';
import { MOST_NAMED, type WriterStatus } from '../clustermesh/key-writer.ts';
import type { MeshCluster } from '../clustermesh/names.ts';
import type { ExportReport } from '../debug/cluster-report.ts';
import type { Committer } from '../engine/committer.ts';
import { EtcdError } from '../etcd/error.ts';
import type { Mesh } from '../mesh.ts';
import type { Log } from '../kube/client/log.ts';

export interface ClusterMeshExportOptions {
  readonly mesh: Pick<Mesh, 'graph' | 'clusters'>;
  readonly committer: Pick<Committer, 'onCommit'>;
  readonly own: MeshCluster;
  /** How to reach the etcd. */
  readonly file: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

export interface ClusterMeshExport {
  /** Writes while this replica leads. */
  lead(term: AbortSignal): void;
  report(): ExportReport;
  /** Resolves once nothing is written any more. */
  idle(): Promise<void>;
}

/** Writes the global services of this cluster into an etcd that the other clusters of the ClusterMesh read. */
export function exportToClusterMesh(options: ClusterMeshExportOptions): ClusterMeshExport {
  const {
    mesh: {
      graph,
      clusters: { global },
    },
    committer,
    own,
    file,
    clock,
    random,
    log,
  } = options;
  let said = '';
  const exporter = new Exporter({
    ...{ own, clock, random },
    ...global,
    // The first commit has all that the sources knew.
    known: new Promise((resolve) => committer.onCommit(() => resolve())),
    open: (onLost) => new EtcdStore({ file, onLost, clock, random }),
    onState() {
      const state = stateOf(report());
      const text = JSON.stringify(state);
      if (state === undefined || text === said) return;
      said = text;
      if (state.isFine) log.info(state.message, state.fields);
      else log.warn(state.message, state.fields);
    },
  });
  const report = (): ExportReport => reportOf(file, exporter.status());
  graph.follow(global.services, (changes) => exporter.changed('services', keysOf(changes)));
  graph.follow(global.slices, (changes) => exporter.changed('endpointslices', keysOf(changes)));
  let leading: Promise<void> = Promise.resolve();
  return {
    lead(term) {
      leading = exporter.lead(term);
    },
    report,
    idle: () => leading,
  };
}

function keysOf(changes: readonly { readonly key: string }[]): readonly string[] {
  return changes.map(({ key }) => key);
}

function reportOf(file: string, status: WriterStatus | undefined): ExportReport {
  if (status === undefined) return { file, phase: 'standby', keys: 0, pending: 0, refused: [], refusedInAll: 0 };
  const { endpoint, isWhole, keys, pending, refused, unlisted, failure } = status;
  const written = isWhole && pending === 0 ? 'written' : 'writing';
  return {
    ...{ file, phase: endpoint === undefined ? 'connecting' : written },
    ...(endpoint !== undefined && { endpoint }),
    ...{ keys, pending },
    refused: Array.from(refused, ([key, reason]) => ({ key, reason })).slice(0, MOST_NAMED),
    refusedInAll: refused.size,
    ...(unlisted && { unlisted: reasonOf(unlisted) }),
    ...(failure && { trouble: { reason: reasonOf(failure.error), since: failure.since.toISOString() } }),
  };
}

function reasonOf(error: Error): string {
  return error instanceof EtcdError ? printFailure(failureOf(error)) : error.message;
}

interface State {
  readonly isFine: boolean;
  readonly message: string;
  readonly fields: object;
}

function stateOf({ file, phase, endpoint, refused, unlisted, trouble }: ExportReport): State | undefined {
  if (trouble !== undefined)
    return {
      isFine: false,
      message: 'Global services cannot be written for other clusters: etcd cannot be used',
      fields: { file, reason: trouble.reason },
    };
  if (unlisted !== undefined)
    return {
      isFine: false,
      message: 'Global services in etcd cannot be listed: stale ones stay until their lease ends',
      fields: { file, endpoint, reason: unlisted },
    };
  if (refused.length > 0) {
    const keys = refused.map(({ key, reason }) => `${key}: ${reason}`);
    return { isFine: false, message: 'etcd refuses keys of global services', fields: { endpoint, keys } };
  }
  return phase === 'written'
    ? { isFine: true, message: 'Global services are written for other clusters', fields: { endpoint } }
    : undefined;
}
