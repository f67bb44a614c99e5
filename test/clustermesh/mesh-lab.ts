import { expect } from 'vitest';
import type { EndpointSlice } from '../../src/api/core.ts';
import type { SourceKindName } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { ObjectSink } from '../../src/api/source.ts';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import { ClusterIds } from '../../src/clustermesh/cluster-ids.ts';
import type { MeshCluster } from '../../src/clustermesh/names.ts';
import { type MeshReaderOptions, type MeshSource, readMeshCluster } from '../../src/clustermesh/reader.ts';
import type { EtcdAccess } from '../../src/etcd/access.ts';

/** What a source has delivered. */
export class Delivered implements ObjectSink {
  readonly kinds = new Map<SourceKindName, Map<string, KubernetesObject>>();
  /** Calls of `replace` for slices. */
  replaced = 0;

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    if (kind === 'EndpointSlice') this.replaced++;
    this.kinds.set(kind, new Map(objects.map((object) => [keyOf(object), object])));
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    this.#of(kind).set(keyOf(object), object);
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    expect(this.#of(kind).delete(`${namespace}/${name}`)).toBe(true);
  }

  /** Service -> `address:port` of its back ends. */
  get backends(): Readonly<Record<string, readonly string[]>> {
    const found = new Map<string, string[]>();
    for (const object of this.#of('EndpointSlice').values()) {
      const { metadata, endpoints, ports } = object as EndpointSlice;
      const service = `${metadata.namespace}/${metadata.labels?.['kubernetes.io/service-name']}`;
      const all = found.get(service) ?? [];
      found.set(service, all);
      for (const { addresses } of endpoints ?? [])
        for (const { port } of ports ?? []) all.push(...addresses.map((address) => `${address}:${port}`));
    }
    return Object.fromEntries([...found].map(([service, all]) => [service, all.sort()]));
  }

  names(kind: SourceKindName): readonly string[] {
    return [...this.#of(kind).keys()].sort();
  }

  async has(expected: Readonly<Record<string, readonly string[]>>): Promise<void> {
    await expect.poll(() => this.backends).toEqual(expected);
  }

  #of(kind: SourceKindName): Map<string, KubernetesObject> {
    const found = this.kinds.get(kind) ?? new Map<string, KubernetesObject>();
    this.kinds.set(kind, found);
    return found;
  }
}

export const OWN: MeshCluster = { name: 'own', id: 1, limit: 255 };

export interface Reading {
  readonly source: MeshSource;
  readonly sink: Delivered;
  isReady: boolean;
  end(): Promise<void>;
}

/** Reads a cluster of the mesh. */
export function startReading(
  name: string,
  access: EtcdAccess,
  more: Partial<MeshReaderOptions> & { readonly clock?: Clock } = {},
): Reading {
  const sink = new Delivered();
  const ending = new AbortController();
  const source = readMeshCluster(
    {
      ...{ name, access, sink, own: OWN, ids: new ClusterIds(OWN), importsServices: false },
      ...{ clock: systemClock, random: () => 0, ...more },
    },
    ending,
  );
  const reading: Reading = {
    ...{ source, sink, isReady: false },
    async end() {
      ending.abort();
      await source.ended;
    },
  };
  void source.ready.then(() => (reading.isReady = true));
  return reading;
}

function keyOf({ metadata: { namespace = '', name } }: KubernetesObject): string {
  return `${namespace}/${name}`;
}
