import type { Collection, Reader } from '../../cache/graph.ts';
import { isTooLarge, noSecurity } from '../../envoy/security/authorization.ts';
import type { MergedListener } from '../../model/gateway.ts';
import type { GatewayAccess } from '../../judge/gateway.ts';
import type { settleGatewayListener } from '../../settle/gateway-chains.ts';
import { policyless } from '../resources/access.ts';
import { type SettleDeps, settleSecurity } from '../resources/security-filters.ts';
import { settingOf } from '../settings.ts';
import { type GatewayDeps, type RouterClass, type Routers, targetsOf } from './routers.ts';
import type { GatewaySet } from './routes.ts';

/** What the servers of a listener mean to a router. */
export type SettleListener = (
  listener: MergedListener,
  router: RouterClass,
  read: Reader,
) => ReturnType<typeof settleGatewayListener>;

export interface GatewayAccessDeps extends GatewayDeps, SettleDeps {
  readonly routers: Routers;
  readonly sets: Collection<GatewaySet>;
  readonly settle: SettleListener;
}

/** The same values from which the listeners of the router are made. */
export function accessOf(stream: string, read: Reader, deps: GatewayAccessDeps): GatewayAccess | undefined {
  const proxy = read.get(deps.proxies.resolved, stream);
  if (proxy === undefined || 'error' in proxy || proxy.router === undefined) return undefined;
  const router = read.get(deps.routers.ofRouter, proxy.router.key);
  const set = router && read.get(deps.sets, router.key);
  if (set === undefined) return undefined;
  const { policies, gatewayTopology } = set.router;
  const settings = settingOf(read, deps.settings.listeners);
  const { trustDomain, trustDomainAliases } = settingOf(read, deps.settings.security);
  const { pathNormalization } = settings;
  const policySet = read.get(deps.workloadPolicies.sets, policies);
  const security = policySet === undefined ? policyless(false) : settleSecurity(policySet, read, deps);
  const filters = read.get(deps.securityFilters, policies) ?? noSecurity;
  return {
    listeners: set.listeners.flatMap((merged) => {
      const { listener } = deps.settle(merged, set.router, read);
      // Nothing to serve: the port stays closed.
      if (listener.chains.length === 0) return [];
      const own = isTooLarge(filters, listener.chains.length) ? policyless(true) : security;
      return [{ ...listener, filters: { ...own, pathNormalization } }];
    }),
    issuers: security.issuers,
    servicePorts: targetsOf(proxy.workload, read, deps),
    trustDomains: [trustDomain, ...trustDomainAliases],
    topology: { ...settings.gatewayTopology, ...gatewayTopology },
  };
}
