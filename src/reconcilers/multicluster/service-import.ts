import { type ObjectRef, printRef, refOf } from '../../api/object.ts';
import type { ServiceImport } from '../../api/multicluster.ts';
import type { Problem } from '../../api/problem.ts';
import { canonicalAddress, isAddress } from '../../model/address.ts';
import { type ExportedService, clusterSetDomain } from '../../model/exported-service.ts';
import type { MeshService } from '../../model/service.ts';
import { type ServiceContext, reconcileService } from '../core/service.ts';

export interface ImportContext extends Omit<ServiceContext, 'domainSuffix'> {
  /** Undefined: no cluster has a ServiceExport of this name. */
  readonly exported: ExportedService | undefined;
  /** The Service in another namespace that has an address. */
  readonly ownerOf: (address: string) => MeshService | undefined;
}

/** What a ServiceImport means: a Service with a host of its own, and with endpoints of all clusters that export it. */
export interface ReconciledImport {
  /** Absent until it has an address, unless it is headless. */
  readonly service?: MeshService;
  readonly problems: readonly Problem[];
}

/** One for each IP family. */
const mostAddresses = 2;

export function reconcileServiceImport(object: ServiceImport, context: ImportContext): ReconciledImport {
  const { spec = {} } = object;
  const isHeadless = spec.type === 'Headless';
  const self = refOf(context.source, object);
  const { addresses, problems } = isHeadless ? { addresses: [], problems: [] } : addressesOf(object, self, context);
  if (!isHeadless && addresses.length === 0) return { problems };
  const asService = {
    ...object,
    kind: 'ServiceImport' as 'Service',
    spec: {
      ...(spec.ports && { ports: spec.ports }),
      clusterIP: addresses[0] ?? 'None',
      clusterIPs: addresses,
      ...(spec.internalTrafficPolicy && { internalTrafficPolicy: spec.internalTrafficPolicy }),
      ...(spec.trafficDistribution && { trafficDistribution: spec.trafficDistribution }),
    },
  };
  const own = reconcileService(asService, { ...context, domainSuffix: clusterSetDomain });
  const parts = context.exported?.service;
  if (parts === undefined) {
    const message = 'No cluster exports a Service of this name, so requests fail; create a ServiceExport beside it.';
    return { service: own, problems: [...problems, { object: self, field: '', reason: 'RefNotFound', message }] };
  }
  return { service: { ...own, ...parts, origins: [...own.origins, ...parts.origins] }, problems };
}

function addressesOf(
  { spec: { ips = [] } = {} }: ServiceImport,
  object: ObjectRef,
  { ownerOf }: ImportContext,
): { readonly addresses: readonly string[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const add = (field: string, reason: Problem['reason'], message: string): void =>
    void problems.push({ object, field, reason, message });
  if (ips.length === 0) add('spec.ips', 'Ineffective', 'is empty: the host is not served before it has an address.');
  if (ips.length > mostAddresses)
    add('spec.ips', 'Ineffective', `has ${ips.length} addresses; only the first ${mostAddresses} are used.`);
  const addresses = ips.slice(0, mostAddresses).flatMap((ip, i) => {
    const field = `spec.ips[${i}]`;
    if (!isAddress(ip)) {
      add(field, 'Invalid', `${JSON.stringify(ip)} is not an IP address.`);
      return [];
    }
    const address = canonicalAddress(ip);
    const owner = ownerOf(address);
    if (owner === undefined) return [address];
    add(
      field,
      'Conflicted',
      `${address} belongs to ${printRef(owner.origins[0]!)}, which keeps it; use another address.`,
    );
    return [];
  });
  return { addresses: [...new Set(addresses)], problems };
}
