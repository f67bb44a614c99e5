import type { EndpointSlice, Service } from '../api/core.ts';
import type { ObjectSink } from '../api/source.ts';
import type { Clock } from '../base/clock.ts';
import type { BackendPods } from './backend-pods.ts';
import type { Decoded } from './member.ts';
import { changesBetween, serviceOf, sliceOf, slicesOfService } from './objects.ts';
import { decodeService } from './service-value.ts';
import { decodeSlice } from './slice-value.ts';
import { type StoredValues, WatchStore } from './watch-store.ts';

/** What one key of another cluster means here. */
export interface ServedObjects {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
}

/** In one of these, a cluster writes its global services. */
export type ServingKind = 'services' | 'endpointslices';

/** What proxies are to have of another cluster, delivered as objects once it was read whole. */
export function servingStore(sink: ObjectSink, pods: BackendPods, clock: Clock): WatchStore<ServedObjects> {
  return new WatchStore<ServedObjects>({
    clock,
    doubtsLists: true,
    replaced(values) {
      const all = [...values.values()];
      sink.replace(
        'Service',
        all.flatMap(({ services }) => services),
      );
      const slices = all.flatMap((each) => each.slices);
      sink.replace('EndpointSlice', slices);
      pods.replaceBackends(slices);
    },
    changed(now = NOTHING, before = NOTHING) {
      deliver(sink, 'Service', before.services, now.services);
      deliver(sink, 'EndpointSlice', before.slices, now.slices);
      pods.changeBackends(before.slices, now.slices);
    },
  });
}

const NOTHING: ServedObjects = { services: [], slices: [] };

function deliver<T extends EndpointSlice | Service>(
  sink: ObjectSink,
  kind: 'EndpointSlice' | 'Service',
  before: readonly T[],
  now: readonly T[],
): void {
  const { changed, gone } = changesBetween(before, now);
  for (const object of changed) sink.upsert(kind, object);
  const namespace = before[0]?.metadata.namespace ?? '';
  for (const name of gone) sink.delete(kind, namespace, name);
}

/** @param importsServices also those that no Service of this cluster has the name of. */
export function servedValues(
  kind: ServingKind,
  importsServices: boolean,
): Pick<StoredValues<ServedObjects>, 'decode' | 'sizeOf'> {
  if (kind === 'endpointslices')
    return {
      decode: (suffix, bytes, cluster) =>
        map(decodeSlice(suffix, bytes, cluster), (value) => {
          const slice = sliceOf(value, cluster.name);
          return { services: [], slices: slice === undefined ? [] : [slice] };
        }),
      // They are compressed.
      sizeOf: ({ slices }) => slices.reduce((sum, slice) => sum + sizeOfSlice(slice), 0),
    };
  return {
    decode: (suffix, bytes, cluster) =>
      map(decodeService(suffix, bytes, cluster), (value) => {
        const service = importsServices ? serviceOf(value) : undefined;
        return { services: service === undefined ? [] : [service], slices: slicesOfService(value) };
      }),
  };
}

/** Roughly. */
const BYTES_PER_ENDPOINT = 200;
const BYTES_PER_ADDRESS = 50;

function sizeOfSlice({ endpoints }: EndpointSlice): number {
  return (endpoints ?? []).reduce(
    (sum, { addresses }) => sum + BYTES_PER_ENDPOINT + addresses.length * BYTES_PER_ADDRESS,
    0,
  );
}

function map<T, U>(decoded: Decoded<T>, to: (value: T) => U): Decoded<U> {
  return 'value' in decoded ? { value: to(decoded.value) } : decoded;
}
