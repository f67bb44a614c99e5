import type { Json } from '../api/json.ts';
import { INIT, PROXY, listIn, mapContainers, nameOf, objectIn, specOf, textIn, withSpec } from './pod.ts';
import { DEFAULT_STATUS_PORT, type Settled } from './pod-values.ts';

/**
 * The Pod with its proxy where it runs: first of the containers that are started and last of those that end, beside
 * applications; among the containers if it is the only one, as in a gateway.
 *
 * - Native: an init container that goes on running, after the one that sets up interception and before the user's.
 * - Classic: the last container, or the first one, which applications then wait for; interception comes after the user's
 *   init containers, whose connections would lead to a proxy that is not there yet.
 */
export function arrange(
  pod: Json,
  { native, hold, intercepts, statusPort, agentPort }: Settled,
  command: readonly string[],
): Json {
  const { containers, initContainers } = listsOf(withoutIntercept(pod, intercepts));
  const proxy = [...initContainers, ...containers].find((container) => nameOf(container) === PROXY);
  if (proxy === undefined) return pod;
  const [init, others] = [initContainers.filter(isIntercept), initContainers.filter((each) => !isIntercept(each))];
  const inits = others.filter((container) => container !== proxy);
  const applications = containers.filter((container) => container !== proxy);
  const probed = statusPort === 0 ? withoutProbes(proxy) : proxy;
  if (applications.length === 0) return withLists(pod, [...inits, ...init], [probed]);
  const portArgs = ['--port', String(agentPort)];
  if (native) {
    const args = agentPort === DEFAULT_STATUS_PORT ? [] : portArgs;
    const drain = { preStop: { exec: { command: [...command, 'agent', 'drain', ...args] } } };
    const running = { ...probed, restartPolicy: 'Always', lifecycle: { ...drain, ...objectIn(probed, 'lifecycle') } };
    return withLists(pod, [...init, running, ...inits], applications);
  }
  if (!hold) return withLists(pod, [...inits, ...init], [...applications, probed]);
  // By default for Envoy, which answers on a port of its own.
  const args = hasEnvoy(proxy) ? [] : portArgs;
  const wait = { postStart: { exec: { command: [...command, 'agent', 'wait', ...args] } } };
  const awaited = { ...probed, lifecycle: { ...wait, ...objectIn(probed, 'lifecycle') } };
  return withLists(pod, [...inits, ...init], [awaited, ...applications]);
}

/** Names by list, as they are after {@link arrange}. */
export function addedLists(pod: Json, added: Json): Json {
  const { containers, initContainers } = listsOf(pod);
  const names = new Set([added['containers'], added['initContainers']].flatMap((list) => list as readonly string[]));
  const of = (list: readonly Json[]): string[] => list.map(nameOf).filter((name) => names.has(name));
  return { ...added, initContainers: of(initContainers), containers: of(containers) };
}

function listsOf(pod: Json): { readonly containers: readonly Json[]; readonly initContainers: readonly Json[] } {
  const spec = specOf(pod);
  return { containers: listIn(spec, 'containers'), initContainers: listIn(spec, 'initContainers') };
}

function withLists(pod: Json, initContainers: readonly Json[], containers: readonly Json[]): Json {
  return withSpec(pod, { initContainers, containers });
}

/** Whether connections of the Pod are redirected to its proxy. */
export function isIntercepted(pod: Json): boolean {
  return listsOf(pod).initContainers.some(isIntercept);
}

/** As its agent reads it. */
export function hasEnvoy(proxy: Json): boolean {
  const said = listIn(proxy, 'env').findLast((variable) => nameOf(variable) === 'DISABLE_ENVOY');
  return said === undefined || !['1', 't', 'true'].includes(textIn(said, 'value').toLowerCase());
}

function isIntercept(container: Json): boolean {
  return nameOf(container) === INIT;
}

function withoutIntercept(pod: Json, intercepts: boolean): Json {
  const { containers, initContainers } = listsOf(pod);
  return intercepts
    ? pod
    : withLists(
        pod,
        initContainers.filter((each) => !isIntercept(each)),
        containers,
      );
}

function withoutProbes({ readinessProbe: _, startupProbe: __, ...container }: Json): Json {
  return container;
}

/** Each variable once: Kubernetes would take the last one, too. */
export function withEachVariableOnce(pod: Json): Json {
  return mapContainers(pod, (container) => {
    const env = listIn(container, 'env');
    const last = new Map(env.map((variable) => [nameOf(variable), variable]));
    return last.size === env.length ? container : { ...container, env: [...last.values()] };
  });
}
