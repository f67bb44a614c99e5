import { isObject, type Json } from '../api/json.ts';
import { parseJson } from '../api/annotation-json.ts';
import { PROXY, listIn, mapContainers, nameOf, objectIn, withEnvironment } from './pod.ts';

/** Where the agent reads how to probe the application. */
export const PROBERS = 'ISTIO_KUBE_APP_PROBERS';

/** What the kubelet asks, and the last part of the path under which the agent answers. */
const probes = { readinessProbe: 'readyz', livenessProbe: 'livez', startupProbe: 'startupz' } as const;
const hooks = { preStop: 'prestopz', postStart: 'poststartz' } as const;

/** By path. */
type Probers = Readonly<Record<string, Json>>;

/**
 * The Pod with probes that the kubelet sends to the agent, which sends them on to the application: it has no client
 * certificate, and the proxy accepts connections without one only from here. Commands stay as they are.
 */
export function rewriteProbes(
  pod: Json,
  statusPort: number,
): { readonly pod: Json; readonly warnings: readonly string[] } {
  const probers: Record<string, Json> = {};
  const warnings: string[] = [];
  const rewritten = mapContainers(pod, (container) => {
    if (nameOf(container) === PROXY) return container;
    const rewrite = new Rewrite(container, statusPort, probers, warnings);
    return rewrite.container();
  });
  return { pod: withProbers(rewritten, probers), warnings };
}

class Rewrite {
  readonly #container: Json;
  readonly #statusPort: number;
  readonly #probers: Record<string, Json>;
  readonly #warnings: string[];

  constructor(container: Json, statusPort: number, probers: Record<string, Json>, warnings: string[]) {
    this.#container = container;
    this.#statusPort = statusPort;
    this.#probers = probers;
    this.#warnings = warnings;
  }

  container(): Json {
    const changed: Json = { ...this.#container };
    for (const [name, end] of Object.entries(probes)) {
      const probe = objectIn(this.#container, name);
      const handler = this.#handler(`${nameOf(this.#container)}.${name}`, probe, ['httpGet', 'tcpSocket', 'grpc']);
      if (handler === undefined) continue;
      // The API server's default, which a second run would see.
      const { timeoutSeconds = 1 } = probe;
      const httpGet = this.#redirected(handler, `/app-health/${nameOf(this.#container)}/${end}`, { timeoutSeconds });
      const { httpGet: _, tcpSocket: __, grpc: ___, ...rest } = probe;
      changed[name] = { ...rest, httpGet };
    }
    const lifecycle = objectIn(this.#container, 'lifecycle');
    for (const [name, end] of Object.entries(hooks)) {
      const handler = this.#handler(`${nameOf(this.#container)}.${name}`, objectIn(lifecycle, name), [
        'httpGet',
        'tcpSocket',
      ]);
      if (handler === undefined) continue;
      const httpGet = this.#redirected(handler, `/app-lifecycle/${nameOf(this.#container)}/${end}`, {});
      changed['lifecycle'] = { ...objectIn(changed, 'lifecycle'), [name]: { httpGet } };
    }
    return changed;
  }

  /** As the agent is told; undefined for what stays. */
  #handler(place: string, probe: Json, kinds: readonly string[]): Json | undefined {
    const kind = kinds.find((each) => isObject(probe[each]));
    if (kind === undefined) return undefined;
    const handler = objectIn(probe, kind);
    // A host is asked by the kubelet itself, from the node.
    if (typeof handler['host'] === 'string' && handler['host'] !== '') return undefined;
    const port = this.#portNumber(handler['port']);
    if (port === undefined) {
      this.#warnings.push(`${place} names the port ${String(handler['port'])}, which its container does not have`);
      return undefined;
    }
    // Somebody else's agent, or ours before.
    return port === this.#statusPort ? undefined : { [kind]: { ...handler, port } };
  }

  #portNumber(port: unknown): number | undefined {
    if (typeof port === 'number') return port;
    if (/^\d{1,5}$/.test(String(port))) return Number(port);
    const found = listIn(this.#container, 'ports').find(({ name }) => name === port);
    return found?.['containerPort'] as number | undefined;
  }

  #redirected(handler: Json, path: string, more: Json): Json {
    this.#probers[path] = { ...handler, ...more };
    const httpGet = objectIn(handler, 'httpGet');
    const headers = httpGet['httpHeaders'];
    return { path, port: this.#statusPort, ...(headers !== undefined && { httpHeaders: headers }) };
  }
}

/** Probers of an earlier run stay, unless a container has a new one. */
function withProbers(pod: Json, probers: Probers): Json {
  if (Object.keys(probers).length === 0) return pod;
  return mapContainers(pod, (container) =>
    nameOf(container) === PROXY
      ? withEnvironment(container, [{ name: PROBERS, value: JSON.stringify(probers) }])
      : container,
  );
}

/** The Pod as it was before its probes were rewritten. `probers`: the value of the agent's variable. */
export function restoreProbes(pod: Json, probers: string): Json {
  const known = parsed(probers);
  return mapContainers(pod, (container) => {
    const changed: Json = { ...container };
    for (const [name, end] of Object.entries(probes)) {
      const prober = known[`/app-health/${nameOf(container)}/${end}`];
      const { httpGet: _, ...rest } = objectIn(container, name);
      if (isObject(prober) && isObject(container[name])) changed[name] = { ...rest, ...handlerOf(prober) };
    }
    const lifecycle = objectIn(container, 'lifecycle');
    for (const [name, end] of Object.entries(hooks)) {
      const prober = known[`/app-lifecycle/${nameOf(container)}/${end}`];
      if (isObject(prober) && isObject(lifecycle[name]))
        changed['lifecycle'] = { ...objectIn(changed, 'lifecycle'), [name]: handlerOf(prober) };
    }
    return changed;
  });
}

/** The time limit is still in the probe itself. */
function handlerOf({ timeoutSeconds: _, ...handler }: Json): Json {
  return handler;
}

function parsed(text: string): Json {
  const value = parseJson(text);
  return isObject(value) ? value : {};
}
