import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { kinds, sourceKindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { Json } from '../../src/api/json.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { collectionPath } from '../../src/kube/client/paths.ts';
import { FakeApiServer } from '../../src/kube/testing/fake-api-server.ts';
import type { FakeRequest } from '../../src/kube/testing/fake-cluster.ts';
import { Program } from './program.ts';
import type { SkippingClock } from './skipping-clock.ts';
import { Waiters } from './waiters.ts';

/** Where objects come from. */
export interface Source {
  apply(...objects: readonly KubernetesObject[]): Promise<void>;
  delete(...objects: readonly KubernetesObject[]): Promise<void>;
  /** Starts a program that reads from here. */
  start(settings?: Readonly<Record<string, string>>, identity?: string): Promise<Program>;
}

/** A directory with one file for each object, put in its place at once. */
export class Directory implements Source {
  readonly path: string;
  readonly #onEnd: OnEnd;

  private constructor(path: string, onEnd: OnEnd) {
    this.path = path;
    this.#onEnd = onEnd;
  }

  static async create(onEnd: OnEnd = onTestFinished): Promise<Directory> {
    return new Directory(await temporaryDirectory(onEnd), onEnd);
  }

  async apply(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) await this.write(fileOf(object), stringify(object));
  }

  async delete(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) await rm(join(this.path, fileOf(object)));
  }

  async write(file: string, text: string): Promise<void> {
    const hidden = join(this.path, '.new');
    await mkdir(this.path, { recursive: true });
    await writeFile(hidden, text);
    await rename(hidden, join(this.path, file));
  }

  start(settings: Readonly<Record<string, string>> = {}): Promise<Program> {
    return Program.start({ directory: [this.path], ...settings }, { onEnd: this.#onEnd });
  }
}

function fileOf({ kind, metadata }: KubernetesObject): string {
  return `${kind}-${metadata.namespace ?? ''}-${metadata.name}.yaml`.toLowerCase();
}

/** A cluster with all kinds installed, behind HTTP. */
export class Cluster implements Source {
  readonly server: FakeApiServer;
  readonly kubeconfig: string;
  readonly #written = new Waiters();

  private constructor(server: FakeApiServer, kubeconfig: string) {
    this.server = server;
    this.kubeconfig = kubeconfig;
    server.cluster.onPatch = () => queueMicrotask(() => this.#written.wake());
  }

  static async create(): Promise<Cluster> {
    const directory = await temporaryDirectory();
    const server = await new FakeApiServer().start();
    onTestFinished(() => server.stop());
    for (const kind of kinds) server.cluster.install(collectionPath(kind), kind.kind);
    server.cluster.install(LEASES, 'Lease');
    server.cluster.install(EVENTS, 'Event');
    server.cluster.install(REPORTS, 'ReplicaReport');
    server.cluster.install(GENERATIONS, 'GenerationInForce');
    server.cluster.install(SECRETS, 'Secret');
    server.cluster.install(TOKEN_REVIEWS, 'TokenReview');
    server.cluster.install(ACCESS_REVIEWS, 'SubjectAccessReview');
    const kubeconfig = join(directory, 'kubeconfig');
    await writeFile(kubeconfig, server.kubeConfig().exportConfig());
    return new Cluster(server, kubeconfig);
  }

  apply(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) this.server.cluster.apply(pathOf(object), object as Body);
    return Promise.resolve();
  }

  delete(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects)
      this.server.cluster.delete(pathOf(object), object.metadata.namespace ?? '', object.metadata.name);
    return Promise.resolve();
  }

  /** Deletes it, and creates another one of its name. */
  recreate(object: KubernetesObject): void {
    this.server.cluster.apply(pathOf(object), object as Body, { anew: true });
  }

  /** As the server has it now. */
  object({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject & Json {
    const found = this.server.cluster.object(pathOf({ apiVersion, kind }), metadata.namespace ?? '', metadata.name);
    return (found ?? expect.fail(`there is no ${kind} ${metadata.name}`)) as KubernetesObject & Json;
  }

  /** Waits for a write of a status after which it holds. */
  async changed(assertion: () => void): Promise<void> {
    await this.#written.until(assertion);
  }

  /** The paths of all statuses that were written. */
  writes(): readonly string[] {
    return this.server.cluster.requests.flatMap(({ method, path }) =>
      method === 'PATCH' && path.endsWith('/status') ? [path] : [],
    );
  }

  /** From now on the open watches say nothing. */
  loseEvents(): void {
    for (const watch of this.server.cluster.watches()) watch.mute();
  }

  /** The server ends all watches. */
  endWatches(): void {
    for (const watch of this.server.cluster.watches()) watch.finish();
  }

  /** How often a collection was listed. */
  lists(): number {
    // The ConfigMaps of the roots are listed when this replica begins to lead.
    const isList = ({ query: { limit, fieldSelector } }: FakeRequest): boolean =>
      limit !== undefined && limit !== '1' && fieldSelector !== 'metadata.name=istio-ca-root-cert';
    return this.server.cluster.requests.filter(isList).length;
  }

  start(settings: Readonly<Record<string, string>> = {}, identity?: string, clock?: SkippingClock): Promise<Program> {
    return Program.start({ kubeconfig: this.kubeconfig, ...settings }, { identity, clock });
  }
}

/** An object as the API server sees it. */
type Body = KubernetesObject & Json & { readonly metadata: Json };

export const LEASES = '/apis/coordination.k8s.io/v1/leases';

export const SECRETS = '/api/v1/secrets';

export const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';

export const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

export const REPORTS = '/apis/fairlead.dev/v1alpha1/replicareports';
export const GENERATIONS = '/apis/fairlead.dev/v1alpha1/generationsinforce';
export const EVENTS = '/apis/events.k8s.io/v1/events';

export function pathOf({ apiVersion, kind }: Pick<KubernetesObject, 'apiVersion' | 'kind'>): string {
  return collectionPath(sourceKindOf(apiVersion, kind)!);
}
