import type { DestinationRule } from '../../api/gen/destination-rule.gen.ts';
import type { ObjectRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Workload } from '../../model/endpoint.ts';
import { isWildcard } from '../../model/host.ts';
import { printSelector, selected, selects } from '../../model/labels.ts';
import { coverAny } from '../../settle/locality-groups.ts';
import { resolvePolicy, subsetOf } from '../../model/policy-resolution.ts';
import { type MeshService, isTls } from '../../model/service.ts';
import type { DestinationRuleModel, LocalityLbSetting, Subset, TrafficPolicy } from '../../model/traffic-policy.ts';
import { anyTraits } from '../../model/traits.ts';
import { isMesh } from '../../model/route-binding.ts';
import { concreteService } from '../clients/lookups.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type Workloads, selectedWorkloads } from '../objects/workloads.ts';
import type { DestinationDeps } from '../clients/destinations.ts';
import { oneOf, takesRequests } from './ports-of-hosts.ts';

/** A traffic policy as it is written somewhere in a rule. */
interface Level {
  /** `spec.subsets[0].trafficPolicy` */
  readonly field: string;
  /** Of a port, if it is for one. */
  readonly port?: number;
  readonly subset?: Subset;
  /** What is written here. */
  readonly own: TrafficPolicy;
}

/** What is valid in DestinationRules, and has no effect, or a bad one, together with what else is there. */
export function declareRuleRemarks(
  graph: Graph,
  deps: DestinationDeps & { readonly bindings: RouteBindings; readonly workloads: Workloads },
): Collection<HasProblems> {
  const detecting = graph.derive(
    'rules that detect by host',
    graph.index('rules of one host that detect', deps.rules.single, (_, rule) =>
      detects(rule) ? [hostKey(rule)] : [],
    ),
    (key, members, _, emit: Emit<readonly string[]>) =>
      emit(
        key,
        members.slice(0, 2).map((member) => member.key),
      ),
  );
  const routesTo = graph.index('routes of requests by destination', deps.bindings.all, (_, { needs }) => [
    ...new Set(needs.targets.flatMap(({ host, takesRequests }) => (takesRequests ? [host] : []))),
  ]);
  return graph.derive('remarks on rules', deps.rules.single, (key, rule, read, emit: Emit<HasProblems>) => {
    const object = read.get(deps.inputs.objects.DestinationRule, key) as DestinationRule | undefined;
    if (object === undefined) return;
    const levels = levelsOf(rule, object);
    const view = { client: rule.namespace, traits: anyTraits };
    const service = concreteService(read, deps, view, rule.host);
    /** Another rule for the same host, with which this one is merged, ejects endpoints. */
    const isHelped = (read.get(detecting, hostKey(rule)) ?? []).some((other) => other !== key);
    const problems = boundProblems(findings());
    if (problems.length > 0) emit(key, { problems });

    function* findings(): Iterable<Problem> {
      const [ref] = rule.origins;
      if (ref === undefined) return;
      if (!isHelped) yield* idleLocalities(ref, rule, levels);
      if (service === undefined || service.host !== rule.host) return;
      // The other settings of a rule for a wildcard may be meant for a host below it.
      if (!isWildcard(rule.host)) {
        yield* unknownPorts(ref, service, levels);
        yield* nobodyLeft(ref, service, levels, () => placedEndpoints(service, read, deps.workloads));
      }
      yield* doubleTls(ref, service, levels, (port) =>
        read
          .group(routesTo, rule.host)
          .some(
            ({ value: { needs, parents, ...binding } }) =>
              needs.targets.some((to) => to.takesRequests && to.host === rule.host && (to.port ?? port) === port) &&
              (!parents.every(isMesh) || takesRequests(binding, read, deps)),
          ),
      );
    }
  });
}

const hostKey = ({ namespace, host }: DestinationRuleModel): string => `${namespace}/${host}`;

/** Whether a rule ejects endpoints. */
function detects({ policy, portPolicies, subsets }: DestinationRuleModel): boolean {
  return [policy, ...Object.values(portPolicies), ...subsets.map((subset) => subset.policy)].some(
    ({ outlierDetection }) => outlierDetection !== undefined,
  );
}

function levelsOf(rule: DestinationRuleModel, { spec }: DestinationRule): readonly Level[] {
  const portsOf = (
    field: string,
    written: DestinationRule['spec']['trafficPolicy'],
    policies: DestinationRuleModel['portPolicies'],
  ): Level[] =>
    (written?.portLevelSettings ?? []).flatMap(({ port }, i): Level[] => {
      const own = policies[port?.number ?? 0];
      return own === undefined ? [] : [{ field: `${field}.portLevelSettings[${i}]`, port: port!.number!, own }];
    });
  const top = 'spec.trafficPolicy';
  const subsets = (spec.subsets ?? []).flatMap(({ name, trafficPolicy }, i): Level[] => {
    const subset = subsetOf(rule, name);
    if (subset === undefined) return [];
    const field = `spec.subsets[${i}].trafficPolicy`;
    const ports = portsOf(field, trafficPolicy, subset.portPolicies);
    return [{ field, own: subset.policy }, ...ports].map((level) => ({ ...level, subset }));
  });
  return [{ field: top, own: rule.policy }, ...portsOf(top, spec.trafficPolicy, rule.portPolicies), ...subsets];
}

function report(object: ObjectRef, field: string, message: string): Problem {
  return { object, field, reason: 'Ineffective', message };
}

/** Envoy leaves a locality only for lack of healthy endpoints, and only outlier detection finds that they are not. */
function* idleLocalities(ref: ObjectRef, rule: DestinationRuleModel, levels: readonly Level[]): Iterable<Problem> {
  for (const { field, own, port = 0, subset } of levels) {
    const locality = own.loadBalancer?.localityLb;
    if (locality === undefined || !locality.enabled || locality.distribute.length > 0) continue;
    if (resolvePolicy(rule, port, subset, {}).outlierDetection !== undefined) continue;
    const inherits = port !== 0 && rule.policy.outlierDetection !== undefined;
    const message = `has no effect without outlierDetection, by which failing endpoints are found; add it ${inherits ? 'here: settings for ports inherit nothing' : 'to the same policy'}.`;
    yield report(ref, `${field}.loadBalancer.localityLbSetting${memberOf(locality)}`, message);
  }
}

function memberOf({ failover, failoverPriority }: LocalityLbSetting): string {
  return failover.length > 0 ? '.failover' : failoverPriority.length > 0 ? '.failoverPriority' : '';
}

function* unknownPorts(ref: ObjectRef, { host, ports }: MeshService, levels: readonly Level[]): Iterable<Problem> {
  if (ports.length === 0) return;
  const numbers = new Set(ports.map(({ number }) => number));
  const meant = oneOf(numbers, 'one that it has');
  for (const { field, port } of levels) {
    if (port === undefined || numbers.has(port)) continue;
    const message = `has no effect: ${quote(host)} has no port ${port}; name ${meant}.`;
    yield report(ref, `${field}.port.number`, message);
  }
}

/** Shares of requests for places where a host has no endpoint. */
function* nobodyLeft(
  ref: ObjectRef,
  service: MeshService,
  levels: readonly Level[],
  placed: () => readonly Placed[] | undefined,
): Iterable<Problem> {
  const { resolution, host } = service;
  const isShared = levels.some(({ own }) => (own.loadBalancer?.localityLb?.distribute ?? []).length > 0);
  const endpoints = isShared && BALANCED.has(resolution) ? placed() : undefined;
  if (endpoints === undefined) return;
  const places = new Map<string, Places>();
  for (const { field, own, subset } of levels) {
    const { enabled = false, distribute = [] } = own.loadBalancer?.localityLb ?? {};
    if (!enabled || distribute.length === 0) continue;
    const labels = printSelector(subset?.labels ?? {});
    const known = places.get(labels) ?? placesOf(selected(endpoints, subset?.labels ?? {}));
    places.set(labels, known);
    if (known.listed.length === 0) continue;
    for (const [i, { from, to }] of distribute.entries()) {
      if (Object.keys(to).some(known.has)) continue;
      const message = `names no locality of an endpoint of ${quote(host)} (they have ${known.listed.join(', ')}), so that clients in ${quote(from)} get 503; name the localities of its endpoints.`;
      yield report(ref, `${field}.loadBalancer.localityLbSetting.distribute[${i}].to`, message);
    }
  }
}

type Placed = Pick<Workload, 'labels' | 'locality'>;

/** Of more workloads that share a label, not all are looked at. */
const mostWorkloads = 1_000;

/** The endpoints of a service; undefined if not all places are known: those of Pods are those of their Nodes. */
function placedEndpoints(
  { endpoints, selector, namespace, global }: MeshService,
  read: Reader,
  workloads: Workloads,
): readonly Placed[] | undefined {
  if (global !== undefined) return undefined;
  if (selector === undefined) return endpoints;
  const found = selectedWorkloads(read, workloads, namespace, selector);
  if (found.length > mostWorkloads) return undefined;
  const behind = found.filter(({ labels }) => selects(selector, labels));
  const isUnknown = behind.some(({ kind, locality }) => kind === 'Pod' && locality === '');
  return isUnknown ? undefined : [...endpoints, ...behind];
}

/** Where endpoints are. */
interface Places {
  /** Whether a pattern covers any of them. */
  readonly has: (pattern: string) => boolean;
  /** The first ones, for people. */
  readonly listed: readonly string[];
}

function placesOf(endpoints: readonly Placed[]): Places {
  const localities = [...new Set(endpoints.map(({ locality }) => locality))];
  const listed = localities.slice(0, 5).map((locality) => (locality === '' ? 'none' : quote(locality)));
  return { has: coverAny(localities), listed };
}

const BALANCED: ReadonlySet<MeshService['resolution']> = new Set(['ClientSideLB', 'DNSLB']);

/** @param hasHttp whether routes send requests to the port that proxies have seen as HTTP. */
function* doubleTls(
  ref: ObjectRef,
  { host, ports }: MeshService,
  levels: readonly Level[],
  hasHttp: (port: number) => boolean,
): Iterable<Problem> {
  const encrypting = levels.filter(({ own: { tls } }) => tls?.mode === 'SIMPLE' || tls?.mode === 'MUTUAL');
  if (encrypting.length === 0) return;
  const encrypted = ports.filter(({ number, protocol }) => isTls(protocol) && !hasHttp(number));
  const byNumber = new Map(encrypted.map((port) => [port.number, port]));
  const withOwn = new Set(levels.map(({ port }) => port));
  const firstOfOthers = encrypted.find(({ number }) => !withOwn.has(number));
  for (const { field, port } of encrypting) {
    const first = port === undefined ? firstOfOthers : byNumber.get(port);
    if (first === undefined) continue;
    const message = `encrypts connections to port ${first.number} of ${quote(host)} a second time: its protocol is ${first.protocol}, so the application encrypts them already. If it sends plain HTTP, declare the port as HTTP; otherwise, remove the setting.`;
    yield report(ref, `${field}.tls.mode`, message);
  }
}
