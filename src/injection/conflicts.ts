import type { Json } from '../api/json.ts';
import { DNS_PORT, PROXY_ID } from '../interception/options.ts';
import { hasEnvoy, isIntercepted } from './arrange.ts';
import { PROXY, allContainers, annotationsOf, listIn, nameOf, objectIn, specOf } from './pod.ts';
import type { Settled } from './pod-values.ts';
import { HEALTH_PORT, PROMETHEUS_PORT } from './traffic.ts';

/** Why the Pod could not run beside this proxy: one of the two would find its port taken. */
export function portConflict(
  pod: Json,
  proxy: Json | undefined,
  { adminPort, outboundPort, inboundPort, agentPort, dns }: Settled,
): string | undefined {
  if (proxy === undefined) return undefined;
  const taken = new Set([
    agentPort,
    ...(hasEnvoy(proxy) ? [adminPort, outboundPort, inboundPort, HEALTH_PORT, PROMETHEUS_PORT] : []),
    ...(dns ? [DNS_PORT] : []),
  ]);
  for (const container of allContainers(pod)) {
    if (nameOf(container) === PROXY) continue;
    for (const { containerPort, protocol = 'TCP' } of listIn(container, 'ports')) {
      const isTaken = protocol === 'UDP' ? dns && containerPort === DNS_PORT : taken.has(containerPort as number);
      if (isTaken) return `container ${nameOf(container)} has the port ${String(containerPort)}, which the proxy needs`;
    }
  }
  return undefined;
}

/** What the owner of an injected Pod may not expect. */
export function remarksOnUsers(pod: Json): string[] {
  if (!isIntercepted(pod)) return [];
  const spec = specOf(pod);
  return ['runAsUser', 'runAsGroup'].flatMap((field) =>
    allContainers(pod)
      .filter((container) => nameOf(container) !== PROXY)
      .filter((container) => {
        const own = objectIn(container, 'securityContext')[field];
        return (own ?? objectIn(spec, 'securityContext')[field]) === PROXY_ID;
      })
      .map(
        (container) =>
          `container ${nameOf(container)} has ${field} ${PROXY_ID}, as the proxy does: its connections bypass the proxy; choose another`,
      ),
  );
}

/** What the kernel takes as one argument or variable. */
const MAX_VARIABLE = 128 * 1024 - 1;
/** What the API server takes. */
const MAX_ANNOTATIONS = 256 * 1024;

/** Why the Pod could not be stored, or its proxy not be started. */
export function tooLarge(pod: Json): string | undefined {
  for (const container of allContainers(pod))
    for (const { name, value } of listIn(container, 'env'))
      if (typeof value === 'string' && Buffer.byteLength(value) + Buffer.byteLength(String(name)) + 1 > MAX_VARIABLE)
        return `the variable ${String(name)} of ${nameOf(container)} would be longer than the 128 KiB that a process can be given${hintFor(String(name))}`;
  return hasTooLongAnnotations(pod) ? 'its annotations would be longer than 256 KiB in total; shorten them' : undefined;
}

/** Whether the API server would not take them, whatever else the Pod becomes. */
export function hasTooLongAnnotations(pod: Json): boolean {
  const total = Object.entries(annotationsOf(pod)).reduce(
    (sum, [name, text]) => sum + Buffer.byteLength(name) + Buffer.byteLength(text),
    0,
  );
  return total > MAX_ANNOTATIONS;
}

function hintFor(name: string): string {
  return name === 'ISTIO_KUBE_APP_PROBERS'
    ? '; annotate the Pod with sidecar.istio.io/rewriteAppHTTPProbers: "false", or give it fewer probes'
    : '';
}
