import { BlockList, isIP } from 'node:net';
import type { ConfigMap, EndpointSlice } from '../../api/core.ts';
import { withoutNulls } from '../../api/json.ts';
import type { Kind, KindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { validateCore } from '../../api/validate-core.ts';
import { isTimestamp, validateMetadata } from '../../api/validate-metadata.ts';
import { sizeOf } from '../client/budget.ts';
import type { Shape } from './sink-state.ts';

/** No API server stores an object that is larger: etcd takes no more. Bytes. */
const LARGEST = 1_500_000;

/** Real ones have a few thousand characters. Reading the longest takes 0.1 s. */
const LONGEST_MESH_CONFIG = 64 * 1024;

/**
 * For what a server sends that others run: refuses objects that an API server would not have stored, and counts what is
 * computed from others.
 */
export function checked(kind: Kind<KindName>, shape: Shape): Shape {
  const special = specialAddresses();
  return {
    same: (a, b) => shape.same(a, b),
    size: (object) => sizeOf(object) + sizeOfComputed(object),
    trim(raw, version) {
      const object = withoutNulls(shape.trim(raw, version)) as KubernetesObject;
      if (sizeOf(object) > LARGEST || !isStored(kind, object, special))
        throw new Error('not an object of an API server');
      return object;
    },
  };
}

function isStored(kind: Kind<KindName>, object: KubernetesObject, special: BlockList): boolean {
  const {
    namespace = '',
    uid,
    resourceVersion,
    generation,
    deletionTimestamp,
    ownerReferences = [],
  } = object.metadata as Unchecked;
  if (kind.namespaced === (namespace === '')) return false;
  if (uid !== undefined && typeof uid !== 'string') return false;
  if (resourceVersion !== undefined && typeof resourceVersion !== 'string') return false;
  if (generation !== undefined && !Number.isSafeInteger(generation)) return false;
  if (deletionTimestamp !== undefined && !isTimestamp(deletionTimestamp)) return false;
  if (ownerReferences.some((owner) => typeof owner['kind'] !== 'string' || typeof owner['name'] !== 'string'))
    return false;
  // What custom kinds contain is checked where it is read.
  const findings = kind.custom ? [] : validateCore({ ...object }, kind.name as Parameters<typeof validateCore>[1]);
  if (findings.length > 0 || validateMetadata(object.metadata, kind).length > 0) return false;
  if (kind.name === 'ConfigMap') return ((object as ConfigMap).data?.['mesh'] ?? '').length <= LONGEST_MESH_CONFIG;
  return kind.name !== 'EndpointSlice' || hasEndpoints(object as EndpointSlice, special);
}

/**
 * What is computed from them, in bytes. Of a Service that several clusters have, most is computed once: a port takes 24 KiB
 * with one sidecar if no other cluster has it, and next to nothing if the own one does.
 */
const PER_PORT = 8 * 1024;
const PER_ENDPOINT = 1024;

/** A few bytes of a Service or slice become clusters, listeners and routes, or an endpoint for each port. */
function sizeOfComputed(object: KubernetesObject): number {
  const { kind, spec = {}, ports = spec.ports ?? [], endpoints } = object as Multiplying;
  if (kind === 'Service' || kind === 'ServiceImport') return PER_PORT * ports.length;
  const addresses = (endpoints ?? []).reduce((sum, { addresses: of }) => sum + of.length, 0);
  return PER_ENDPOINT * addresses * ports.length;
}

interface Multiplying {
  readonly kind: string;
  readonly spec?: { readonly ports?: readonly unknown[] };
  readonly ports?: readonly unknown[];
  readonly endpoints?: readonly { readonly addresses: readonly string[] }[];
}

/** In a slice of type FQDN, which is not read, an endpoint may be any text. */
function hasEndpoints({ addressType, endpoints }: EndpointSlice, special: BlockList): boolean {
  const isUsable = (address: string): boolean => {
    const version = isIP(address);
    return version !== 0 && !address.includes('%') && !special.check(address, version === 4 ? 'ipv4' : 'ipv6');
  };
  return addressType === 'FQDN' || (endpoints ?? []).every(({ addresses }) => addresses?.every(isUsable));
}

/** Addresses of the client's own host or link, which no slice may have. Source: `ValidateNonSpecialIP` of Kubernetes. */
function specialAddresses(): BlockList {
  const special = new BlockList();
  for (const [net, length] of [
    ['0.0.0.0', 32],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['224.0.0.0', 24],
  ] as const)
    special.addSubnet(net, length, 'ipv4');
  for (const [net, length] of [
    ['::', 127],
    ['fe80::', 10],
    ['ff02::', 16],
  ] as const)
    special.addSubnet(net, length, 'ipv6');
  return special;
}

interface Unchecked {
  readonly namespace?: unknown;
  readonly uid?: unknown;
  readonly resourceVersion?: unknown;
  readonly generation?: unknown;
  readonly deletionTimestamp?: unknown;
  readonly ownerReferences?: readonly Readonly<Record<string, unknown>>[];
}
