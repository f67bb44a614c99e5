import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';
import type { Traits } from './traits.ts';

/** The messages that can be patched. Chains are patched in their listener, routes apart from their virtual host. */
export type PatchedType = 'cluster' | 'listener' | 'filterChain' | 'routeTable' | 'virtualHost' | 'route';

/** `inbound` and `outbound` are those of sidecars; everything that routers get is `gateway`. */
export type Direction = 'inbound' | 'outbound' | 'gateway';

/** Where a message stands. What is not known of it, or differs between those that share the message, is absent. */
export interface Slot {
  readonly type: PatchedType;
  readonly direction: Direction;
  /** Name of the listener. */
  readonly listener?: string;
  /** Of the service; of listeners, the port that they listen on. */
  readonly port?: number;
  /** Name of the route table. */
  readonly table?: string;
  /** Of the service or the routes. */
  readonly host?: string;
  readonly subset?: string;
}

/** A change to some messages. The slot has every value that the patch names; what else it asks for, only its kind knows. */
export interface Patch extends Pick<Slot, 'type' | 'direction' | 'listener' | 'port' | 'table' | 'host'> {
  /** Of the object: where the patch is written. */
  readonly field: string;
  /** Plain JSON, which only the front end of its kind reads. */
  readonly payload: unknown;
}

/** Patches of an object for the same proxies: all that selection sees of it. */
export interface PatchSource extends Aged {
  /** `kind/source/namespace/name`, with more behind if an object has patches for several choices of proxies. */
  readonly key: string;
  readonly ref: ObjectRef;
  /** Of the proxies; empty, or the root namespace: all. */
  readonly namespace: string;
  /** Labels of the proxies. Absent: all. */
  readonly selector?: Labels;
  /** Lower comes first. Then those for all namespaces, then the oldest. */
  readonly priority: number;
  readonly patches: readonly Patch[];
}

/** What a patch is looked up by, besides its type and direction: for most slots, only few patches can touch them. */
export function subjectOf({ type, host, listener, table }: Omit<Slot, 'direction'>): string {
  switch (type) {
    case 'listener':
    case 'filterChain':
      return listener ?? '';
    case 'routeTable':
      return table ?? '';
    case 'cluster':
    case 'virtualHost':
    case 'route':
      return host ?? '';
  }
}

/** Whether a patch may change the message there. */
export function touches(patch: Patch, slot: Slot): boolean {
  return (
    patch.type === slot.type &&
    patch.direction === slot.direction &&
    isMeant(patch.listener, slot.listener) &&
    isMeant(patch.port, slot.port) &&
    isMeant(patch.table, slot.table) &&
    isMeant(patch.host, slot.host)
  );
}

function isMeant<T>(asked: T | undefined, found: T | undefined): boolean {
  return asked === undefined || asked === found;
}

/** What proxies share: patches of one area split nothing else. */
export type PatchArea = AreaOfSidecars | AreaOfRouters;

type AreaOfSidecars = 'clusters' | 'listeners' | 'routes' | 'inbound';

/** `gateway`: what Gateways ask of them. */
type AreaOfRouters = 'routerClusters' | 'gateway';

export function areaOf({ type, direction }: Pick<Slot, 'type' | 'direction'>): PatchArea {
  if (direction === 'inbound') return 'inbound';
  if (direction === 'gateway') return type === 'cluster' ? 'routerClusters' : 'gateway';
  if (type === 'cluster') return 'clusters';
  return type === 'listener' || type === 'filterChain' ? 'listeners' : 'routes';
}

/** The areas that a proxy has. */
export function hasArea(proxyType: Traits['proxyType'], area: PatchArea): boolean {
  return (area === 'routerClusters' || area === 'gateway') === (proxyType === 'router');
}

/** Of what clients of these traits send. */
export const directionOf = ({ proxyType }: Pick<Traits, 'proxyType'>): Direction =>
  proxyType === 'router' ? 'gateway' : 'outbound';
