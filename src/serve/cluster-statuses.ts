import { parseNameKey } from '../api/keys.ts';
import { WHOLE } from '../api/place.ts';
import type { CustomKindName, KindName } from '../api/kinds.ts';
import { isObject } from '../api/json.ts';
import { type KubernetesObject, objectKey } from '../api/object.ts';
import type { Engine } from '../engine/engine.ts';
import { AddressAllocator } from '../engine/address-allocator.ts';
import { ObjectStatuses } from '../engine/object-statuses.ts';
import type { ObjectGeneration } from '../engine/progress.ts';
import { Replicas } from '../engine/replicas.ts';
import { ReplicaReports, type ReplicaReportsOptions } from '../kube/writing/replica-reports.ts';
import { StatusesWithAddresses } from '../engine/statuses-with-addresses.ts';
import type { StatusWriter } from '../kube/writing/status-writer.ts';
import { generationKey, parseGenerationKey } from '../mesh/objects/in-force.ts';
import { signature } from '../status/export-conditions.ts';
import { printReport, readReport } from '../status/replica-report.ts';

export interface ClusterStatusesOptions extends Pick<
  ReplicaReportsOptions,
  'api' | 'clock' | 'random' | 'log' | 'outages' | 'signal'
> {
  readonly engine: Engine;
  readonly writer: StatusWriter;
  /** That this runs in; undefined: none, and there is one replica. */
  readonly pod: ReplicaReportsOptions['pod'] | undefined;
  /** Cluster id, as in the keys of objects. */
  readonly clusterId: string;
  /** The latest copy of an object from the server. */
  readonly latest: (kind: KindName, namespace: string, name: string) => KubernetesObject | undefined;
}

export interface ClusterStatuses {
  /** The server's copy of an object has changed. */
  observed(kind: KindName, namespace: string, name: string): void;
  idle(): Promise<void>;
}

/** What the statuses of objects say, from what all replicas know. */
export function keepStatuses(options: ClusterStatusesOptions): ClusterStatuses {
  const { engine, writer, pod, clusterId, latest, clock, signal } = options;
  const { progress, mesh, committer, generations } = engine;
  const isConfirmed = (object: ObjectGeneration): boolean =>
    wasAcknowledged(latest(object.kind, object.namespace, object.name), object);
  progress.recall(isConfirmed);
  const podKey = (replica: string): string => {
    const { namespace, name } = parseNameKey(replica);
    return objectKey(clusterId, namespace, name);
  };
  const replicas = new Replicas({
    progress,
    servingSince: () => dateOf(engine.servingSince()),
    others: () => (pod === undefined ? [] : mesh.clusters.replicasOf(objectKey(clusterId, pod.namespace, pod.name))),
    isRunning: (name) => mesh.clusters.isRunning(podKey(name)),
    isConfirmed,
    rejected: ({ key, uid, generation, progress: said }) => {
      if (said.state !== 'rejected') return;
      const { proxies, rejections } = said;
      generations.rejectedElsewhere(key, { uid, generations: [{ generation, proxies, rejections }] });
    },
  });
  const reports =
    pod === undefined
      ? undefined
      : new ReplicaReports({
          ...options,
          pod,
          own() {
            const own = replicas.own();
            return own && printReport(own);
          },
          found: (replica, spec) => replicas.found(replica, spec === undefined ? undefined : readReport(spec)),
        });
  const statuses = new ObjectStatuses({
    progress,
    replicas,
    clock,
    set: (key, status) => said.set(key, status),
    forget: (key) => said.forget(key),
    signal,
  });
  const addresses = new AddressAllocator();
  const said = new StatusesWithAddresses(writer, (key) => addresses.of(parseGenerationKey(key).objectKey));
  mesh.graph.follow(mesh.wanted.addresses, (changes) => {
    const claims = new Map(changes.map(({ key, after }) => [key, after]));
    for (const key of addresses.update(claims)) said.again(generationKey('ServiceEntry', key));
  });
  mesh.verdicts.follow((key, verdict) => statuses.judged(key, verdict));
  mesh.graph.follow(mesh.clusters.exports, (changes) => {
    for (const { key, after: verdict } of changes) {
      const id = `ServiceExport/${key}`;
      if (verdict === undefined || verdict.isRemote) writer.forget(id);
      else {
        const { conditions, ...rest } = verdict;
        writer.set(id, { kind: 'ServiceExport', signature, ...rest, said: [{ place: WHOLE, conditions }] });
      }
    }
  });
  progress.onChange(() => reports?.changed());
  committer.onCommit(() => {
    replicas.committed();
    reports?.changed();
  });
  const following = reports?.follow();
  function dateOf(at: number | undefined): string | undefined {
    return at === undefined ? undefined : new Date(clock.date().getTime() - (clock.now() - at)).toISOString();
  }
  return {
    observed(kind, namespace, name) {
      writer.observed(kind, namespace, name);
      if (kind === 'ServiceExport') return;
      const object = latest(kind, namespace, name);
      if (object !== undefined) engine.writer.touched(kind as CustomKindName, object);
      progress.confirm(generationKey(kind as CustomKindName, objectKey(clusterId, namespace, name)));
    },
    async idle() {
      await following;
      await reports?.idle();
    },
  };
}

/** Its status says so. */
function wasAcknowledged(latest: KubernetesObject | undefined, { uid, generation }: ObjectGeneration): boolean {
  const { status } = (latest ?? {}) as { readonly status?: unknown };
  const conditions = isObject(status) ? status['conditions'] : undefined;
  return (
    latest?.metadata.uid === uid &&
    Array.isArray(conditions) &&
    conditions.some(
      (each) =>
        isObject(each) &&
        each['type'] === 'Programmed' &&
        each['status'] === 'True' &&
        each['reason'] === 'Programmed' &&
        each['observedGeneration'] === generation,
    )
  );
}
