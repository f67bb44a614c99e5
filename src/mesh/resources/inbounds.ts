import { type ObjectRef, distinctRefs } from '../../api/object.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { buildInboundCluster } from '../../envoy/cluster/inbound-clusters.ts';
import { type SecurityFilters, closed, isTooLarge, noSecurity } from '../../envoy/security/authorization.ts';
import type { Secret } from '../../envoy/gen/types.gen.ts';
import { fileSecretsOf } from '../../envoy/tls/file-secrets.ts';
import { buildInbound } from '../../envoy/listener/inbound-listeners.ts';
import type { PeerModes } from '../../model/peer-authentication.ts';
import type { PolicyObject } from '../../model/policy-target.ts';
import { type Source, wholeObjects } from '../../model/provenance.ts';
import { inboundCluster } from '../../model/service.ts';
import { egressImports } from '../../model/sidecar.ts';
import { settleInboundClusters } from '../../settle/inbound-clusters.ts';
import { type InboundTargets, inboundTargets } from '../../settle/inbound.ts';
import { inboundList } from '../lists.ts';
import type { Slot } from '../../model/patch.ts';
import type { Patches } from '../clients/patch-sets.ts';
import { listenerSlot, patchingAt } from './patching.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { InboundTarget } from '../../model/inbound.ts';
import type { Policies, PolicyKind } from '../objects/policies.ts';
import { type Rules, ruleFor } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import type { PoliciesOfWorkloads } from '../clients/workload-policies.ts';
import { type WorkloadClass, type WorkloadClasses, servicesOf } from '../clients/workload-classes.ts';

export interface InboundDeps {
  readonly settings: Settings;
  readonly services: Services;
  readonly rules: Rules;
  readonly sidecars: Sidecars;
  readonly workloadClasses: WorkloadClasses;
  readonly policies: Policies;
  readonly workloadPolicies: PoliciesOfWorkloads;
  readonly securityFilters: Collection<SecurityFilters>;
  readonly patches: Patches | undefined;
  readonly encoder: Encoder;
}

export interface Inbounds {
  readonly members: Members;
  readonly problems: readonly Collection<HasProblems>[];
  /** By class. */
  readonly targets: Collection<InboundTargets>;
}

/** What workloads themselves serve, by class. */
export function declareInbounds(graph: Graph, deps: InboundDeps): Inbounds {
  const { encoder } = deps;
  const targets = graph.derive(
    'inboundTargets',
    deps.workloadClasses.classes,
    (key, one, read, emit: Emit<InboundTargets>) => {
      if (one.traits.proxyType === 'sidecar') emit(key, targetsOf(one, read, deps));
    },
  );
  const members = graph.derive(
    'inboundResources',
    targets,
    (key, { targets: served }, read, emit: Emit<Member>) => {
      const one = read.get(deps.workloadClasses.classes, key);
      if (one === undefined || one.traits.family === 'grpc') return;
      const list = inboundList(key);
      const policies = read.get(deps.workloadPolicies.ofClass, key);
      if (policies === undefined) return;
      const addresses = served.some((target) => target.ingress !== undefined) ? one.addresses : [];
      const shared = { targets: served, traits: one.traits, addresses };
      const byCluster = Map.groupBy(served, ({ port }) => inboundCluster(port));
      const from = (clusters: readonly string[]): readonly Source[] => {
        const all = new Set(clusters);
        const [only] = clusters;
        const named =
          only !== undefined && all.size === 1
            ? (byCluster.get(only) ?? [])
            : served.filter(({ port }) => all.has(inboundCluster(port)));
        return wholeObjects(distinctRefs(named.flatMap(({ origins }) => origins)));
      };
      const { patches } = one;
      const settings = settingOf(read, deps.settings.clusters);
      for (const settled of settleInboundClusters({ ...shared, settings })) {
        const cluster = buildInboundCluster(settled, one.traits, settings);
        const slot: Slot = { type: 'cluster', direction: 'inbound', port: settled.port };
        const patching = patches === undefined ? undefined : patchingAt(read, deps.patches, patches, slot);
        const resource = encoder.cluster(cluster, () => from([settled.name]), patching);
        emitMember(emit, list, resource, '', patching);
      }
      const security = read.get(deps.securityFilters, policies.set) ?? noSecurity;
      const listeners = buildInbound({
        ...shared,
        settings: settingOf(read, deps.settings.listeners),
        mtls: policies.peers,
        security: isTooLarge(security, chainsOf(served)) ? closed(one.traits) : security,
      });
      for (const { secret, origins } of ingressFiles(one, served).values())
        emitMember(
          emit,
          list,
          encoder.secret(secret, () => wholeObjects(distinctRefs(origins))),
        );
      for (const built of listeners) {
        const patching =
          patches === undefined
            ? undefined
            : patchingAt(read, deps.patches, patches, listenerSlot('inbound', built.listener));
        const sources = () => [...from(built.clusters), ...wholeObjects(security.origins)];
        const resource = encoder.listener(built.listener, built.clusters, sources, patching);
        emitMember(emit, list, resource, '', patching);
      }
    },
    sameMember,
  );
  const tooLarge = graph.derive(
    'policies too large',
    targets,
    (key, { targets: served }, read, emit: Emit<HasProblems>) => {
      const set = read.get(deps.workloadPolicies.ofClass, key)?.set ?? '';
      const security = read.get(deps.securityFilters, set);
      if (security === undefined || !isTooLarge(security, chainsOf(served))) return;
      const policies = read.get(deps.workloadPolicies.sets, set);
      if (policies === undefined) return;
      const { authorization, requests } = policies;
      const ofTokens = security.size === Infinity || authorization.length === 0;
      const problems = ofTokens
        ? tooLargeProblems(requests, deps.policies.requests, 'spec.jwtRules', read, served.length)
        : tooLargeProblems(authorization, deps.policies.authorization, 'spec.rules', read, served.length);
      emit(key, { problems });
    },
  );
  const unused = graph.derive(
    'unused ingress TLS',
    targets,
    (key, { targets: served }, read, emit: Emit<HasProblems>) => {
      const peers = read.get(deps.workloadPolicies.ofClass, key)?.peers;
      const problems = peers === undefined ? [] : unusedTls(served, peers);
      if (problems.length > 0) emit(key, { problems });
    },
  );
  return { members, problems: [targets, tooLarge, unused], targets };
}

/** The files that a proxy itself must read for its ingress listeners, each once. */
function ingressFiles({ traits }: WorkloadClass, served: readonly InboundTarget[]) {
  const files = new Map<string, { readonly secret: Secret; readonly origins: ObjectRef[] }>();
  for (const { ingress, origins } of served)
    for (const secret of ingress?.tls === undefined ? [] : fileSecretsOf(ingress.tls, traits)) {
      const { name = '' } = secret;
      const known = files.get(name);
      if (known === undefined) files.set(name, { secret, origins: [...origins] });
      else known.origins.push(...origins);
    }
  return files;
}

/** Where the proxy terminates mutual TLS, it cannot tell clients outside the mesh apart. */
function unusedTls(served: readonly InboundTarget[], { mode, ports }: PeerModes): readonly Problem[] {
  return served.flatMap(({ port, ingress, origins }) => {
    const own = ports[port] ?? mode;
    if (ingress?.tls === undefined || own === 'DISABLE') return [];
    const { field } = ingress.tls;
    const message = `has no effect where the mesh uses mutual TLS: its mode is ${own} on port ${port}. Add a PeerAuthentication with mode DISABLE for the port.`;
    return origins.map((object): Problem => ({ object, field, reason: 'Ineffective', message }));
  });
}

/** About how many filter chains a workload with these ports has. */
export const chainsOf = (served: readonly InboundTarget[]): number => 2 * served.length + 6;

function tooLargeProblems(
  keys: readonly string[],
  { models }: Pick<PolicyKind<PolicyObject>, 'models'>,
  field: 'spec.rules' | 'spec.jwtRules',
  read: Reader,
  ports: number,
): readonly Problem[] {
  const less = field === 'spec.rules' ? 'values' : 'rules, keys and places for tokens';
  return keys.flatMap((key) => {
    const policy = read.get(models, key);
    if (policy === undefined) return [];
    const message = `With the other policies for a workload with ${ports} ports, its listener would be too large, so the workload accepts nothing. Use fewer ${less}.`;
    return [{ object: policy.ref, field, reason: 'Invalid' as const, message }];
  });
}

function targetsOf(one: WorkloadClass, read: Reader, deps: InboundDeps): InboundTargets {
  const { namespace, matched } = one;
  const { rootNamespace } = settingOf(read, deps.settings.visibility);
  const sidecar = one.sidecar === '' ? undefined : read.get(deps.sidecars.models, one.sidecar);
  const client = { namespace, matched };
  return inboundTargets({
    services: servicesOf(one, read, deps.workloadClasses, deps.services),
    addresses: one.addresses,
    ports: one.ports,
    isEntry: one.isEntry,
    sidecar,
    interception: one.traits.interception,
    ruleOf: (service) =>
      // A workload whose Sidecar does not import its own service sees no rules for it.
      sidecar?.egress.some(({ hosts }) => egressImports(hosts, namespace, service)) === false
        ? undefined
        : ruleFor(read, deps.rules, service, rootNamespace, client),
  });
}
