import { isObject, type Json } from '../../api/json.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { type Clock, aborted, sleep } from '../../base/clock.ts';
import { ApiError, errorOfTransport } from '../client/api-error.ts';
import type { Budget } from '../client/budget.ts';
import type { KubeApi } from '../client/client.ts';
import { FOREIGN_RESPONSE } from '../reading/cluster-reader.ts';
import { Informer } from '../reading/informer.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';
import { collectionPath, objectPath } from '../client/paths.ts';

export interface RootCertificatesOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  /** PEM; empty until there is an authority. */
  readonly roots: () => string;
  /** What people should know about the roots: the annotation of the ConfigMap in this namespace; absent: none. */
  readonly rotation?: { readonly namespace: string; readonly text: () => string };
  /** Names of the namespaces that are to have them: these exist, and are not being deleted. */
  readonly namespaces: () => Iterable<string>;
  /** Whether it is one of them. */
  readonly isWanted: (namespace: string) => boolean;
  /** Others run the API server: what it may make us keep is limited. */
  readonly foreign?: { readonly budget: Budget };
}

export const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' };
/** As in Istio: Pods mount it to check the control plane and their peers. */
export const NAME = 'istio-ca-root-cert';
export const KEY = 'root-cert.pem';
/** A RotationReport, as JSON. */
const ROTATION = 'fairlead/root-rotation';

/** The annotation of the ConfigMap in the root namespace; undefined if there is none. Rejects with an `ApiError`. */
export async function publishedReport(
  api: KubeApi,
  namespace: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const map = await api.get(objectPath(CONFIG_MAPS, namespace, NAME), { signal });
    const metadata = isObject(map) && isObject(map['metadata']) ? map['metadata'] : {};
    const text = isObject(metadata['annotations']) ? metadata['annotations'][ROTATION] : undefined;
    return typeof text === 'string' ? text : undefined;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

const LABEL = { name: 'istio.io/config', value: 'true' };
/** Nothing runs in them that could need it. */
const LEFT_OUT: ReadonlySet<string> = new Set(['kube-public', 'kube-node-lease', 'local-path-storage']);

/** Writes at a time. */
const AT_ONCE = 4;
/** Milliseconds before a failed write is tried again. */
const RETRY = 2_000;
/** The same if it is forbidden, and may be so for good. */
const FORBIDDEN = 60_000;

/**
 * Keeps the roots of the mesh in a ConfigMap of each namespace, while this replica leads. What others change of the
 * entry or the label is set right; other entries are theirs.
 */
export class RootCertificates {
  private readonly options: RootCertificatesOptions;
  /** Namespaces to look at; filled by events, drained by the workers. */
  private readonly queue = new Set<string>();
  /** Workers without work. */
  private readonly idle = new Set<() => void>();
  /** Namespaces in which the last write failed. */
  private readonly failing = new Set<string>();
  /** While this replica leads. */
  private informer: Informer | undefined;

  constructor(options: RootCertificatesOptions) {
    this.options = options;
    options.outages.onReached(() => this.changed([...this.failing]));
  }

  /** Namespaces have come or gone, or the roots have changed. */
  changed(namespaces: Iterable<string> = this.options.namespaces()): void {
    for (const namespace of namespaces) this.queue.add(namespace);
    for (const wake of [...this.idle]) wake();
  }

  /** In how many namespaces these roots are missing; undefined: another replica leads. */
  missing(roots: string): number | undefined {
    const { informer } = this;
    if (informer === undefined) return undefined;
    return [...this.options.namespaces()].filter((namespace) => {
      const current = informer.latest(namespace, NAME);
      return !LEFT_OUT.has(namespace) && (current === undefined || !hasRoots(current, roots));
    }).length;
  }

  /** Works until the signal fires; never rejects. */
  async lead(term: AbortSignal): Promise<void> {
    const { api, clock, random, log, outages, foreign } = this.options;
    const informer = new Informer({
      name: NAME,
      type: CONFIG_MAPS,
      query: { fieldSelector: `metadata.name=${NAME}` },
      shape: { trim, same: (a, b) => JSON.stringify(a) === JSON.stringify(b) },
      sink: {
        replace: () => this.changed(),
        upsert: ({ metadata }) => this.changed([metadata.namespace ?? '']),
        delete: ({ metadata }) => this.changed([metadata.namespace ?? '']),
      },
      api,
      clock,
      random,
      log,
      outages,
      ...(foreign && { budget: foreign.budget, longestEvent: FOREIGN_RESPONSE }),
    });
    const watching = informer.run({ signal: term });
    await Promise.race([informer.whenSynced, aborted(term)]);
    if (!term.aborted) this.informer = informer;
    term.addEventListener(
      'abort',
      () => {
        this.informer = undefined;
        for (const namespace of [...this.failing]) this.worked(namespace);
      },
      { once: true },
    );
    await Promise.all([watching, ...Array.from({ length: AT_ONCE }, () => this.work(informer, term))]);
  }

  private async work(informer: Informer, term: AbortSignal): Promise<void> {
    while (!term.aborted) {
      const [namespace] = this.queue;
      if (namespace === undefined) {
        await this.nextWork(term);
        continue;
      }
      this.queue.delete(namespace);
      await this.setRight(namespace, informer, term);
    }
  }

  private nextWork(term: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        term.removeEventListener('abort', done);
        this.idle.delete(done);
        resolve();
      };
      this.idle.add(done);
      term.addEventListener('abort', done);
    });
  }

  private async setRight(namespace: string, informer: Informer, term: AbortSignal): Promise<void> {
    const { api, roots } = this.options;
    const wanted = roots();
    if (wanted === '' || LEFT_OUT.has(namespace) || !this.options.isWanted(namespace)) return this.worked(namespace);
    const current = informer.latest(namespace, NAME);
    const { rotation } = this.options;
    const annotation = rotation !== undefined && namespace === rotation.namespace ? rotation.text() : undefined;
    if (current !== undefined && isRight(current, wanted, annotation)) return this.worked(namespace);
    const metadata = {
      labels: { [LABEL.name]: LABEL.value },
      ...(annotation !== undefined && { annotations: { [ROTATION]: annotation } }),
    };
    try {
      if (current === undefined) {
        const body = {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: NAME, namespace, ...metadata },
          data: { [KEY]: wanted },
        };
        await api.post(collectionPath(CONFIG_MAPS, namespace), body, { signal: term });
      } else {
        await api.patch(
          objectPath(CONFIG_MAPS, namespace, NAME),
          { metadata, data: { [KEY]: wanted } },
          { signal: term },
        );
      }
      this.worked(namespace);
    } catch (cause) {
      if (term.aborted) return;
      const error = errorOfTransport(cause);
      // The namespace, or the ConfigMap, is gone, or another writer was faster: the watch tells.
      if (error.code === 404 || error.code === 409) return this.worked(namespace);
      this.failing.add(namespace);
      this.options.outages.begin(nameFor(namespace), error);
      this.later(namespace, error, term);
    }
  }

  private worked(namespace: string): void {
    if (this.failing.delete(namespace)) this.options.outages.end(nameFor(namespace));
  }

  private later(namespace: string, error: ApiError, term: AbortSignal): void {
    const ms = error.code === 403 ? FORBIDDEN : Math.max(RETRY, error.retryAfter);
    void sleep(this.options.clock, ms, { signal: term }).then(() => {
      if (!term.aborted) this.changed([namespace]);
    });
  }
}

/** For the log of outages: apart from those of reading, and of other namespaces. */
function nameFor(namespace: string): string {
  return `${NAME} in ${namespace}`;
}

type RootMap = KubernetesObject & { readonly data?: Readonly<Record<string, unknown>> };

function trim(raw: Json): RootMap {
  const { name, namespace, resourceVersion, labels, annotations } = isObject(raw['metadata']) ? raw['metadata'] : {};
  const data = isObject(raw['data']) ? raw['data'] : {};
  const label = isObject(labels) ? labels[LABEL.name] : undefined;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: String(name),
      namespace: String(namespace),
      resourceVersion: String(resourceVersion),
      labels: { [LABEL.name]: String(label) },
      annotations: { [ROTATION]: String(isObject(annotations) ? annotations[ROTATION] : undefined) },
    },
    data: { [KEY]: data[KEY] },
  } as RootMap;
}

function isRight(map: KubernetesObject, roots: string, annotation: string | undefined): boolean {
  const { metadata } = map;
  return (
    hasRoots(map, roots) &&
    metadata.labels?.[LABEL.name] === LABEL.value &&
    (annotation === undefined || metadata.annotations?.[ROTATION] === annotation)
  );
}

function hasRoots(map: KubernetesObject, roots: string): boolean {
  return (map as RootMap).data?.[KEY] === roots;
}
