import type { Reader } from '../../cache/graph.ts';
import { hostShortened } from '../../settle/domains.ts';
import { clusterSetDomain } from '../../model/exported-service.ts';
import { isAddress } from '../../model/address.ts';
import { isWildcard } from '../../model/host.ts';
import { type MeshService, isVisibleTo } from '../../model/service.ts';
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

/**
 * Whether agents leave this host to Kubernetes Services in other namespaces when clients of a namespace look it up:
 * short forms of a Service, names of its Pods, and wildcards that cover any of these. Search lists make a name of the
 * cluster out of every other name first, so `*.local` would take them all.
 */
export function isLeftToServices(
  named: NamedHost,
  client: string,
  domainSuffix: string,
  read: Reader,
  services: Pick<Services, 'addressOwners' | 'byName' | 'byHost'>,
): boolean {
  const { host, namespace } = named;
  const cluster = `.svc.${domainSuffix}`;
  if (isWildcard(host)) {
    const covered = host.slice(1);
    return cluster.endsWith(covered) || (covered.endsWith(cluster) && !covered.endsWith(`.${namespace}${cluster}`));
  }
  return [
    ...keepersOf(named, domainSuffix, read, services),
    ...servicesAbove(named, domainSuffix, read, services),
  ].some((keeper) => isVisibleTo(keeper, client) && (!isBareName(host) || keeper.namespace === client));
}

/** Services in other namespaces whose Pods may have this name: `db.shop` for `db-0.db.shop.svc.cluster.local`. */
function servicesAbove(
  { host, namespace }: NamedHost,
  domainSuffix: string,
  read: Reader,
  { byHost }: Pick<Services, 'byHost'>,
): MeshService[] {
  const suffix = [domainSuffix, clusterSetDomain].map((domain) => `.svc.${domain}`).find((each) => host.endsWith(each));
  const labels = suffix === undefined ? [] : host.slice(0, -suffix.length).split('.');
  if (labels.length < 3) return [];
  return read
    .group(byHost, `${labels.slice(-2).join('.')}${suffix}`)
    .map(({ value }) => value)
    .filter((service) => service.registry === 'Kubernetes' && service.namespace !== namespace);
}
