import type { Reader } from '../../cache/graph.ts';
import { hostShortened } from '../../settle/domains.ts';
import { isAddress } from '../../model/address.ts';
import { isWildcard } from '../../model/host.ts';
import type { MeshService } from '../../model/service.ts';
import type { Services } from './services.ts';

/** A host of a ServiceEntry. */
export interface NamedHost {
  readonly host: string;
  readonly namespace: string;
}

/** `reviews`: names a Service only in its own namespace. */
export const isBareName = (host: string): boolean => !/[.:*]/.test(host);

/**
 * Kubernetes Services in other namespaces that have this host as a short form or address. They keep it from the entry,
 * for clients that see them and use such names.
 */
export function keepersOf(
  { host, namespace }: NamedHost,
  domainSuffix: string,
  read: Reader,
  services: Pick<Services, 'addressOwners' | 'byName' | 'byHost'>,
): MeshService[] {
  const found = (): readonly { readonly value: MeshService }[] => {
    if (isAddress(host)) return read.group(services.addressOwners, host);
    if (isBareName(host)) return read.group(services.byName, host);
    if (isWildcard(host) || !/^[^.]+\.[^.]+(\.svc)?$/.test(host)) return [];
    return read.group(services.byHost, hostShortened(host, { namespace: '', domainSuffix }));
  };
  return found()
    .map(({ value }) => value)
    .filter((service) => service.registry === 'Kubernetes' && service.namespace !== namespace);
}
