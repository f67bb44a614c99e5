import { parseAllDocuments } from 'yaml';
import { ContentHasher } from '../../src/ads/store/content-hash.ts';
import { Store } from '../../src/ads/store/store.ts';
import type { EncodedResource } from '../../src/ads/store/resource.ts';
import type { ConnectedProxy } from '../../src/ads/types.ts';
import { kindOf } from '../../src/api/kinds.ts';
import { type KubernetesObject, objectKey } from '../../src/api/object.ts';
import { type Validate, createValidator } from '../../src/api/validate.ts';
import { Graph, type Write } from '../../src/cache/graph.ts';
import { assertFromScratch } from '../../src/cache/testing/from-scratch.ts';
import { Encoder, type EncoderOptions } from '../../src/envoy/encode/encoder.ts';
import { type Protos, createProtos } from '../../src/envoy/encode/proto.ts';
import { type FrontEnds, type Mesh, buildMesh } from '../../src/mesh.ts';
import { type MeshOptions, ONE, defaultMeshOptions } from '../../src/mesh/inputs.ts';
import { type Snapshot, jsonOf, snapshotOf } from '../../src/debug/snapshot.ts';
import { runs } from '../../src/testing/runs.ts';

let shared: Protos | undefined;
let validate: Validate | undefined;

const EVERY = Math.max(1, Math.round(100 / runs(100)));

/** Created once per test file: it takes a while. */
export function testProtos(): Protos {
  return (shared ??= createProtos());
}

/** Created once per test file, as the protos: it compiles schemas on first use. */
export function testValidate(): Validate {
  return (validate ??= createValidator());
}

export function testEncoder(): Encoder {
  return new Encoder(testProtos());
}

export interface TestMeshOptions {
  /** `sometimes`: for every fourth commit; for every one in `make properties`. */
  readonly oracle?: boolean | 'sometimes';
  readonly mesh?: Partial<MeshOptions>;
  readonly encoder?: EncoderOptions;
  /** See {@link buildMesh}. */
  readonly frontEnds?: FrontEnds;
}

/** All of Fairlead between objects and resources, without a network. */
export class TestMesh {
  readonly graph = new Graph();
  readonly mesh: Mesh;
  readonly store = new Store(new ContentHasher([1, 2]));
  /** Compares commits with a build from scratch. */
  readonly oracle: boolean | 'sometimes';
  readonly #frontEnds: TestMeshOptions['frontEnds'];
  #commits = 0;

  constructor(options: TestMeshOptions = {}) {
    this.oracle = options.oracle ?? true;
    this.#frontEnds = options.frontEnds;
    this.mesh = buildMesh(this.graph, new Encoder(testProtos(), options.encoder), options.frontEnds);
    this.graph.observe((draft) => this.store.apply(this.mesh.publicationOf(draft)));
    this.commit([this.mesh.inputs.options.write(ONE, { ...defaultMeshOptions, ...options.mesh })]);
  }

  commit(writes: readonly Write[]): void {
    this.graph.commit(writes);
    for (const failure of this.graph.failures.values()) throw failure.error;
    const compared = this.oracle === 'sometimes' ? this.#commits++ % EVERY === 0 : this.oracle;
    if (compared) assertFromScratch(this.graph, (graph) => void buildMesh(graph, testEncoder(), this.#frontEnds));
  }

  /** @param cluster where they are; the own one if it is not said. */
  apply(objects: readonly KubernetesObject[], cluster?: string): void {
    this.commit(objects.map((object) => writeOf(this.mesh, object, object, cluster)));
  }

  delete(objects: readonly KubernetesObject[], cluster?: string): void {
    this.commit(objects.map((object) => writeOf(this.mesh, object, undefined, cluster)));
  }

  connect(proxy: ConnectedProxy): void {
    this.commit([this.mesh.inputs.proxies.write(proxy.stream, proxy)]);
  }

  disconnect(stream: string): void {
    this.commit([this.mesh.inputs.proxies.write(stream, undefined)]);
  }

  snapshot(stream: string): Snapshot {
    return snapshotOf(this.store, this.mesh.worldOf(stream), testProtos());
  }

  /** The resources that the proxy can ask for. */
  resources(stream: string): EncodedResource[] {
    const { roots, qualifiers } = this.mesh.worldOf(stream);
    const view = this.store.enter({ roots, qualifiers });
    const lists = new Set(view.roots.flatMap((root) => [...root.lists.keys()].map((list) => list.key)));
    this.store.leave(view);
    return this.mesh.members.flatMap((members) =>
      [...members.entries()]
        .map(([, member]) => member)
        .filter(({ list, qualifier }) => lists.has(list) && (qualifier === '' || qualifiers.includes(qualifier)))
        .map(({ resource }) => resource),
    );
  }

  /** Resources that the proxy has twice with different content: it would get the one that was stored first. */
  clashes(stream: string): string[] {
    const versions = new Map<string, string>();
    return this.resources(stream).flatMap(({ typeUrl, name, version }) => {
      const key = `${typeUrl.slice(typeUrl.lastIndexOf('.') + 1)} ${name}`;
      const other = versions.get(key);
      versions.set(key, version);
      return other === undefined || other === version ? [] : [`${key} is made twice`];
    });
  }

  /** What the proxy has, as protobuf JSON. */
  json(stream: string): Record<'cds' | 'eds' | 'lds' | 'rds', unknown[]> {
    const { cds, eds, lds, rds } = this.snapshot(stream);
    const print = (resources: Snapshot['cds']) => resources.map((resource) => jsonOf(testProtos(), resource));
    return { cds: print(cds), eds: print(eds), lds: print(lds), rds: print(rds) };
  }
}

/** @param value undefined: the object is deleted. */
export function writeOf(
  { inputs }: Mesh,
  object: KubernetesObject,
  value: KubernetesObject | undefined,
  cluster = defaultMeshOptions.clusterId,
): Write {
  const kind = kindOf(object.apiVersion, object.kind)!;
  const { namespace = '', name } = object.metadata;
  return inputs.objects[kind.name].write(objectKey(cluster, namespace, name), value);
}

/** The objects in a YAML text that are of kinds that Fairlead watches. */
export function readObjects(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter(
      (object): object is KubernetesObject => object !== null && kindOf(object.apiVersion, object.kind) !== undefined,
    );
}

export interface EnvoyNode {
  readonly id: string;
  readonly cluster?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly locality?: { readonly region?: string; readonly zone?: string; readonly sub_zone?: string };
}

export function connectedProxy(stream: string, node: EnvoyNode): ConnectedProxy {
  const { region = '', zone = '', sub_zone: subZone = '' } = node.locality ?? {};
  return {
    stream,
    nodeId: node.id,
    nodeCluster: node.cluster ?? '',
    metadata: node.metadata ?? {},
    locality: { region, zone, subZone },
    build: '',
    extensions: [],
  };
}
