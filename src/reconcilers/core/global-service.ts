import type { EndpointSlice, Namespace, Service, SliceEndpoint } from '../../api/core.ts';
import { compareText } from '../../model/age.ts';
import { canonicalAddress, isAddress } from '../../model/address.ts';
import { isGlobalNamespace, isShared } from '../../model/cluster-mesh.ts';
import {
  type GlobalAddress,
  type GlobalBackend,
  type GlobalService,
  MOST_GLOBAL_ENDPOINTS,
  type NamedPort,
} from '../../model/global-service.ts';
import { copiedFrom } from './endpoint-slice.ts';

/**
 * What the other clusters of a ClusterMesh are to know of a Service, or undefined if that is nothing. They know what
 * Cilium would tell them: the endpoints that are ready or still serving.
 *
 * @param slices of the Service.
 */
export function reconcileGlobalService(
  { metadata, spec = {} }: Service,
  slices: readonly EndpointSlice[],
  namespace: Namespace | undefined,
): GlobalService | undefined {
  if (!isShared(metadata.annotations ?? {}) || !isGlobalNamespace(namespace?.metadata.annotations ?? {}))
    return undefined;
  if (spec.type === 'ExternalName') return undefined;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    labels: metadata.labels ?? {},
    selector: spec.selector ?? {},
    frontends: isHeadless(metadata.labels ?? {}, spec) ? [] : frontendsOf(spec),
    backends: backendsOf(slices),
  };
}

/** Which of its slices the other clusters are to have, as they are: those of their own they know themselves. */
export function isGlobalSlice(slice: EndpointSlice): boolean {
  return slice.addressType !== 'FQDN' && copiedFrom(slice) === undefined;
}

function isHeadless(labels: Readonly<Record<string, string>>, { clusterIP }: NonNullable<Service['spec']>): boolean {
  return clusterIP?.toLowerCase() === 'none' || labels['service.kubernetes.io/headless'] !== undefined;
}

function frontendsOf({
  clusterIP = '',
  clusterIPs = [clusterIP],
  ports = [],
}: NonNullable<Service['spec']>): GlobalAddress[] {
  const named = ports.map(({ name = '', port, protocol = 'TCP' }) => ({ name, port, protocol }));
  return clusterIPs.filter(isAddress).map((address) => ({ address: canonicalAddress(address), ports: byName(named) }));
}

/** An address may be in several slices, for different ports. Ends when there are too many: nothing is written then. */
function backendsOf(slices: readonly EndpointSlice[]): readonly GlobalBackend[] {
  const found = new Map<string, GlobalBackend>();
  let endpoints = 0;
  for (const slice of slices) {
    if (!isGlobalSlice(slice)) continue;
    const ports = byName(
      (slice.ports ?? []).flatMap(({ name = '', port, protocol = 'TCP' }) =>
        port === undefined ? [] : [{ name, port, protocol }],
      ),
    );
    for (const { addresses, hostname, zone, hints, conditions = {} } of slice.endpoints ?? []) {
      if (!isUsed(conditions)) continue;
      const forZones = (hints?.forZones ?? []).map(({ name }) => name);
      for (const address of addresses.filter(isAddress).map(canonicalAddress)) {
        const former = found.get(address);
        const all = former === undefined ? ports : byName([...former.ports, ...ports]);
        found.set(address, {
          address,
          ...(hostname && { hostname }),
          ...(zone && { zone }),
          ...(forZones.length > 0 && { forZones }),
          ...former,
          ports: all,
        });
        endpoints += all.length - (former?.ports.length ?? 0);
        if (endpoints > MOST_GLOBAL_ENDPOINTS) return [...found.values()];
      }
    }
  }
  return [...found.values()].sort((a, b) => compareText(a.address, b.address));
}

function isUsed({ ready, serving }: NonNullable<SliceEndpoint['conditions']>): boolean {
  return ready !== false || serving === true;
}

/** Of two with one name, the first. */
function byName(ports: readonly NamedPort[]): readonly NamedPort[] {
  const names = new Map<string, NamedPort>();
  for (const port of ports) if (!names.has(port.name)) names.set(port.name, port);
  return [...names.values()].sort((a, b) => compareText(a.name, b.name));
}
