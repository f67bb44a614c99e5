import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json } from '../../api/json.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Clock } from '../../base/clock.ts';
import { errorOfTransport, isRefused } from '../client/api-error.ts';
import { Backoff } from '../../base/backoff.ts';
import type { KubeApi } from '../client/client.ts';
import { Informer } from '../reading/informer.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';
import { collectionPath, objectPath } from '../client/paths.ts';

export interface ReplicaReportsOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  /** That of this replica. */
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** What is to be published, or undefined if there is nothing yet. */
  readonly own: () => Json | undefined;
  /** What another replica (`namespace/name`) has published, or undefined if it is gone. */
  readonly found: (name: string, spec: unknown) => void;
  readonly signal: AbortSignal;
}

const type = { group: 'fairlead.dev', version: 'v1alpha1', plural: 'replicareports' };
const KIND = 'ReplicaReport';

/** Reports are published this long after something has changed, and this long after each part of the last one. Milliseconds. */
const QUIET_MS = 200;
const SPACING_MS = 1_000;
/** Size of such a part: etcd keeps all versions of a report for minutes, and has a few GB. Bytes. */
const PART_BYTES = 256 * 1024;

/**
 * Publishes what this replica knows in an object that goes with its Pod, and follows those of the others in its
 * namespace: whoever may write there is trusted anyway.
 */
export class ReplicaReports {
  private readonly options: ReplicaReportsOptions;
  private published: Json | undefined;
  private isScheduled = false;
  /** When the next one may be published. */
  private nextAt = Number.NEGATIVE_INFINITY;
  private writing: Promise<void> | undefined;
  private readonly backoff: Backoff;
  /** Ends the wait after a failure, or undefined if there is none, or no reason to end it. */
  private cancel: (() => void) | undefined;

  constructor(options: ReplicaReportsOptions) {
    this.options = options;
    this.backoff = new Backoff({ base: 1_000, cap: 30_000, random: options.random });
    options.outages.onReached(() => {
      if (this.cancel === undefined) return;
      this.cancel();
      this.cancel = undefined;
      this.backoff.reset();
      this.changed();
    });
  }

  /** Runs until the signal fires. */
  async follow(): Promise<void> {
    const { api, clock, random, log, outages, signal, found } = this.options;
    const known = new Set<string>();
    const lost = (): void => this.lost();
    const isOwn = ({ metadata }: KubernetesObject): boolean =>
      metadata.namespace === this.options.pod.namespace && metadata.name === this.options.pod.name;
    const tell = (object: KubernetesObject, spec: unknown): void => {
      if (isOwn(object)) {
        if (spec === undefined) lost();
        return;
      }
      const name = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
      if (spec === undefined) known.delete(name);
      else known.add(name);
      found(name, spec);
    };
    const specOf = (object: KubernetesObject): unknown => (object as { readonly spec?: unknown }).spec;
    const informer = new Informer({
      name: KIND,
      type,
      namespace: this.options.pod.namespace,
      shape: { trim, same: (a, b) => isDeepStrictEqual(specOf(a), specOf(b)) },
      sink: {
        replace(objects) {
          const names = new Set(objects.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`));
          for (const name of [...known])
            if (!names.has(name)) {
              known.delete(name);
              found(name, undefined);
            }
          for (const object of objects) tell(object, specOf(object));
          if (!objects.some(isOwn)) lost();
        },
        upsert: (object) => tell(object, specOf(object)),
        delete: (object) => tell(object, undefined),
      },
      api,
      clock,
      random,
      log,
      outages,
    });
    await informer.run({ signal });
  }

  /** What this replica knows may have changed. */
  changed(): void {
    const { clock, signal } = this.options;
    if (this.isScheduled || signal.aborted) return;
    this.isScheduled = true;
    const wait = Math.max(QUIET_MS, this.nextAt - clock.now());
    clock.after(wait, () => void this.publish());
  }

  async idle(): Promise<void> {
    await this.writing;
  }

  /** Somebody has deleted the report of this replica: the others would wait for it. */
  private lost(): void {
    if (this.published === undefined) return;
    this.published = undefined;
    this.changed();
  }

  private async publish(): Promise<void> {
    await this.writing;
    this.isScheduled = false;
    const { clock, own, signal } = this.options;
    const report = own();
    if (signal.aborted || report === undefined) return;
    if (isDeepStrictEqual(report, this.published)) return;
    const parts = Math.ceil(Buffer.byteLength(JSON.stringify(report)) / PART_BYTES);
    this.nextAt = clock.now() + parts * SPACING_MS;
    this.writing = this.write(report);
    await this.writing;
    this.writing = undefined;
  }

  private async write(spec: Json): Promise<void> {
    const { api, pod, outages, signal, clock } = this.options;
    const { namespace, name, uid } = pod;
    // For the log of outages: apart from those of reading.
    const who = `${KIND}/${namespace}/${name}`;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name, uid }];
    const metadata = { name, namespace, ownerReferences };
    const body = { apiVersion: `${type.group}/${type.version}`, kind: KIND, metadata, spec };
    try {
      try {
        await api.patch(objectPath(type, namespace, name), { metadata: { ownerReferences }, spec }, { signal });
      } catch (cause) {
        if (errorOfTransport(cause).code !== 404) throw cause;
        await api.post(collectionPath(type, namespace), body, { signal });
      }
      this.published = spec;
      this.backoff.reset();
      outages.end(who);
    } catch (cause) {
      if (signal.aborted) return;
      const error = errorOfTransport(cause);
      outages.begin(who, error);
      const cancel = clock.after(this.backoff.next(), () => this.changed());
      this.cancel = isRefused(error) ? undefined : cancel;
    }
  }
}

function trim(raw: Json): KubernetesObject {
  const { metadata, spec } = raw as unknown as KubernetesObject & { readonly spec?: unknown };
  const { name, namespace, uid, resourceVersion } = metadata;
  const kept = {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
  return {
    apiVersion: '',
    kind: KIND,
    metadata: kept,
    spec: isObject(spec) ? spec : {},
  } as KubernetesObject;
}
