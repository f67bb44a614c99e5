import type { Collection, Reader } from '../../cache/graph.ts';
import { type SecurityFilters, isTooLarge } from '../../envoy/security/authorization.ts';
import { accessAtGrpcServer } from '../../judge/grpc-server.ts';
import type { FilterAccess, WorkloadAccess } from '../../judge/judge.ts';
import type { InboundTargets } from '../../settle/inbound.ts';
import { chainsOf } from './inbounds.ts';
import { type SettleDeps, settleSecurity, stepsForGrpc } from './security-filters.ts';
import { settingOf } from '../settings.ts';
import type { Proxies } from '../clients/proxies.ts';
import type { PeerModesOf } from '../objects/peer-modes.ts';
import type { PoliciesOfWorkloads } from '../clients/workload-policies.ts';

export interface AccessDeps extends SettleDeps {
  readonly proxies: Proxies;
  readonly workloadPolicies: PoliciesOfWorkloads;
  readonly peerModes: PeerModesOf;
  readonly securityFilters: Collection<SecurityFilters>;
  /** By workload class. */
  readonly targets: Collection<InboundTargets>;
}

/** The same values from which the listeners of the proxy's workload are made. */
export function accessOf(stream: string, read: Reader, deps: AccessDeps): WorkloadAccess | undefined {
  const proxy = read.get(deps.proxies.resolved, stream);
  if (proxy === undefined || 'error' in proxy) return undefined;
  const { key, traits, namespace, labels } = proxy.workload;
  const served = read.get(deps.targets, key);
  const policies = read.get(deps.workloadPolicies.ofClass, key);
  if (served === undefined || policies === undefined) return undefined;
  const set = read.get(deps.workloadPolicies.sets, policies.set);
  const filters = read.get(deps.securityFilters, policies.set);
  const { trustDomain, trustDomainAliases, pathNormalization } = settingOf(read, deps.settings.listeners);
  const isClosed = filters !== undefined && isTooLarge(filters, chainsOf(served.targets));
  const security = set === undefined || isClosed ? policyless(isClosed) : settleSecurity(set, read, deps);
  const access: WorkloadAccess = {
    agent: traits.agent,
    isLibrary: false,
    peers: policies.peers,
    peerPolicies: deps.peerModes.policies(read, namespace, labels),
    targets: served.targets,
    isRedirected: traits.interception !== 'NONE',
    trustDomains: [trustDomain, ...trustDomainAliases],
    pathNormalization,
    ...security,
  };
  if (traits.family !== 'grpc') return access;
  const steps = set === undefined || isClosed ? security.http.local : stepsForGrpc(set, read, deps).steps;
  return accessAtGrpcServer(access, steps, labels);
}

/** Without policies; or with more than a listener can have, which lets nothing in. */
export function policyless(isClosed: boolean): Omit<FilterAccess, 'pathNormalization'> {
  const nothing = { action: 'ALLOW' as const, policies: [], enforced: [], shadowPrefix: '' };
  const steps = { external: [], local: isClosed ? [nothing] : [] };
  return { http: steps, tcp: steps, issuers: [] };
}
