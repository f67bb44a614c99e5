import type { ConfigMap } from '../api/core.ts';
import { type SourceKindName, sourceKinds } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import { deepEqual } from '../cache/equal.ts';
import type { Labels } from '../model/labels.ts';
import { meshConfigNames } from '../api/mesh-config-names.ts';
import type { Discovery, Selecting } from './discovery.ts';

export interface NamespaceFilterOptions {
  readonly discovery: Discovery;
  readonly sink: ObjectSink;
  /** For the own cluster. */
  readonly own?: {
    /** Where the mesh config is. */
    readonly rootNamespace: string;
    /** Of this control plane, whose replicas are Pods there; they are always read. */
    readonly namespace: string | undefined;
    /** Of this control plane: part of the name of the mesh config. */
    readonly revision?: string | undefined;
  };
  /** Namespaces are selected from now on, or no longer. */
  readonly changed?: (namespaces: readonly string[]) => void;
}

/** What is kept back of a cluster. */
export interface LeftOut {
  /** How many namespaces no selector matches. */
  readonly namespaces: number;
  /** The first of them by name. */
  readonly names: readonly string[];
  readonly objects: number;
}

const MOST_NAMES = 100;

type ByKind = Map<SourceKindName, Map<string, KubernetesObject>>;

/**
 * Passes on what a source delivers, except for objects in namespaces that the discovery selectors do not select. When
 * that changes, what was kept back is passed on, or what was passed on is deleted, in one turn and so in one commit.
 */
export class NamespaceFilter implements ObjectSink, Selecting {
  private readonly options: NamespaceFilterOptions;
  private readonly labels = new Map<string, Labels>();
  /** All objects, by namespace: also without selectors, which may come. */
  private readonly objects = new Map<string, ByKind>();
  private readonly unselected = new Set<string>();

  constructor(options: NamespaceFilterOptions) {
    this.options = options;
  }

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    const { sink, own } = this.options;
    if (!isFiltered(kind)) sink.replace(kind, objects);
    else if (own === undefined) this.replaceChanged(kind, objects);
    else {
      for (const byKind of this.objects.values()) byKind.delete(kind);
      for (const object of objects) this.keep(kind, object);
      for (const namespace of this.objects.keys()) this.forgetEmpty(namespace);
      sink.replace(
        kind,
        objects.filter((object) => this.passes(kind, namespaceOf(object))),
      );
    }
    if (kind === 'Namespace') {
      const before = [...this.labels.keys()];
      this.labels.clear();
      for (const { metadata } of objects) this.labels.set(metadata.name, metadata.labels ?? {});
      this.review(new Set([...before, ...this.labels.keys()]));
    }
    if (kind === 'ConfigMap') this.configured(objects.find((object) => this.isMeshConfig(object)));
    this.follow();
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    const { sink } = this.options;
    if (isFiltered(kind)) {
      this.keep(kind, object);
      if (this.passes(kind, namespaceOf(object))) sink.upsert(kind, object);
    } else sink.upsert(kind, object);
    if (kind === 'Namespace') {
      this.labels.set(object.metadata.name, object.metadata.labels ?? {});
      this.review([object.metadata.name]);
    }
    if (kind === 'ConfigMap' && this.isMeshConfig(object)) this.configured(object);
    this.follow();
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    const { sink } = this.options;
    if (isFiltered(kind)) {
      if (this.passes(kind, namespace)) sink.delete(kind, namespace, name);
      this.objects.get(namespace)?.get(kind)?.delete(name);
      this.forgetEmpty(namespace);
    } else sink.delete(kind, namespace, name);
    if (kind === 'Namespace' && this.labels.delete(name)) this.review([name]);
    if (kind === 'ConfigMap' && this.isMeshConfig({ metadata: { namespace, name } })) this.configured(undefined);
    this.follow();
  }

  caughtUp(kind: SourceKindName): void {
    this.options.sink.caughtUp?.(kind);
  }

  reselect(): void {
    this.review(new Set([...this.labels.keys(), ...this.objects.keys()]));
  }

  /** No selector matches the namespace, as far as its labels are known. */
  leavesOut(namespace: string): boolean {
    const labels = this.labels.get(namespace);
    return labels !== undefined && !this.options.discovery.selects(labels);
  }

  /** Undefined without selectors. */
  leftOut(): LeftOut | undefined {
    if (!this.options.discovery.isSelective) return undefined;
    let objects = 0;
    for (const namespace of this.unselected)
      for (const [kind, found] of this.objects.get(namespace) ?? [])
        if (!this.passes(kind, namespace)) objects += found.size;
    const names = [...this.unselected].sort();
    return { namespaces: names.length, names: names.slice(0, MOST_NAMES), objects };
  }

  /** Objects that are kept back. */
  *kept(): Generator<KubernetesObject> {
    for (const namespace of this.unselected)
      for (const [kind, found] of this.objects.get(namespace) ?? [])
        if (!this.passes(kind, namespace)) yield* found.values();
  }

  /**
   * Another cluster may be listed again and again, and is whenever it is swapped. Only the difference is passed on: the
   * rest would be a commit of nothing, for which all others wait.
   */
  private replaceChanged(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    const { sink } = this.options;
    const former = new Map<string, Map<string, KubernetesObject>>();
    for (const [namespace, byKind] of this.objects) {
      const found = byKind.get(kind);
      if (found === undefined) continue;
      former.set(namespace, found);
      byKind.set(kind, new Map());
    }
    for (const object of objects) {
      const namespace = namespaceOf(object);
      const before = former.get(namespace)?.get(object.metadata.name);
      const isSame = before !== undefined && (before === object || deepEqual(before, object));
      this.keep(kind, isSame ? before : object);
      if (!isSame && this.passes(kind, namespace)) sink.upsert(kind, object);
    }
    for (const [namespace, found] of former) {
      const now = this.objects.get(namespace)?.get(kind);
      if (this.passes(kind, namespace))
        for (const name of found.keys()) if (now?.has(name) !== true) sink.delete(kind, namespace, name);
      this.forgetEmpty(namespace);
    }
  }

  private review(namespaces: Iterable<string>): void {
    const { discovery, changed } = this.options;
    const moved: string[] = [];
    for (const namespace of namespaces) {
      const isSelected = discovery.selects(this.labels.get(namespace));
      if (isSelected !== this.unselected.has(namespace)) continue;
      moved.push(namespace);
      this.move(namespace, isSelected);
    }
    if (moved.length > 0) changed?.(moved);
  }

  private move(namespace: string, isSelected: boolean): void {
    const { sink } = this.options;
    if (isSelected) this.unselected.delete(namespace);
    else this.unselected.add(namespace);
    for (const [kind, found] of this.objects.get(namespace) ?? []) {
      if (this.isAlwaysRead(kind, namespace)) continue;
      for (const [name, object] of found) {
        if (isSelected) sink.upsert(kind, object);
        else sink.delete(kind, namespace, name);
      }
    }
    this.forgetEmpty(namespace);
  }

  private keep(kind: SourceKindName, object: KubernetesObject): void {
    const namespace = namespaceOf(object);
    let byKind = this.objects.get(namespace);
    if (byKind === undefined) {
      this.objects.set(namespace, (byKind = new Map()));
      if (!this.options.discovery.selects(this.labels.get(namespace))) this.unselected.add(namespace);
    }
    let found = byKind.get(kind);
    if (found === undefined) byKind.set(kind, (found = new Map()));
    found.set(object.metadata.name, object);
  }

  private forgetEmpty(namespace: string): void {
    const byKind = this.objects.get(namespace);
    for (const [kind, found] of byKind ?? []) if (found.size === 0) byKind?.delete(kind);
    if (byKind?.size === 0) this.objects.delete(namespace);
    if (!this.objects.has(namespace) && !this.labels.has(namespace)) this.unselected.delete(namespace);
  }

  private passes(kind: SourceKindName, namespace: string): boolean {
    return !this.unselected.has(namespace) || this.isAlwaysRead(kind, namespace);
  }

  private isAlwaysRead(kind: SourceKindName, namespace: string): boolean {
    return kind === 'Pod' && namespace === this.options.own?.namespace;
  }

  private isMeshConfig({ metadata }: Pick<KubernetesObject, 'metadata'>): boolean {
    const { own } = this.options;
    return metadata.namespace === own?.rootNamespace && meshConfigNames(own?.revision).includes(metadata.name);
  }

  private configured(map: KubernetesObject | undefined): void {
    if (this.options.own !== undefined) this.options.discovery.configured(map as ConfigMap | undefined);
  }

  /** A filter with nothing to filter need not follow. */
  private follow(): void {
    if (this.objects.size + this.labels.size > 0) this.options.discovery.follow(this);
    else this.options.discovery.unfollow(this);
  }
}

/** For the owner of an object that is kept back. */
export function leftOutMessage(namespace: string, rootNamespace: string): string {
  return `has no effect: discoverySelectors of the mesh config in ${rootNamespace} do not select the namespace ${namespace}. Give it a label that they select.`;
}

/**
 * The mesh config is read wherever it is. Secrets are read because objects that were selected name them. What is in no
 * namespace concerns all.
 */
const filtered: ReadonlySet<SourceKindName> = new Set(
  sourceKinds
    .filter(({ name, namespaced }) => namespaced && name !== 'ConfigMap' && name !== 'Secret')
    .map(({ name }) => name),
);

function isFiltered(kind: SourceKindName): boolean {
  return filtered.has(kind);
}

function namespaceOf({ metadata: { namespace = '' } }: KubernetesObject): string {
  return namespace;
}
