import { testEncoder } from '../../../test/harness/mesh.ts';
import type { KindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Collection, Write } from '../../cache/graph.ts';
import { Graph } from '../../cache/graph.ts';
import type { EndpointGroup } from '../../mesh/objects/endpoint-groups.ts';
import { ONE, defaultMeshOptions } from '../../mesh/inputs.ts';
import { type Mesh, buildMesh } from '../../mesh.ts';
import type { Clock } from '../../base/clock.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { EndpointHistory } from '../endpoint-history.ts';
import { endpointListener } from '../object-listeners.ts';
import { ObjectWriter } from '../object-writer.ts';

interface ListedEndpoint {
  readonly pod: string;
  readonly ip: string;
  readonly uid?: string;
  readonly ready?: boolean;
}

/** From what a source delivers to the endpoints that are served, without a network. All objects are in `shop`. */
export class EndpointLab {
  readonly clock = new FakeClock();
  readonly graph = new Graph();
  readonly mesh: Mesh = buildMesh(this.graph, testEncoder());
  readonly sink: ObjectWriter;
  readonly #ending = new AbortController();
  #writes: Write[] = [];

  /** @param clock Instead of the lab's own. */
  constructor(clock: Clock = this.clock) {
    const write = (one: Write): void => void this.#writes.push(one);
    const { inputs } = this.mesh;
    const history = new EndpointHistory({ inputs, write, clock, signal: this.#ending.signal });
    this.sink = new ObjectWriter({
      source: 'Kubernetes',
      revision: undefined,
      inputs,
      listeners: [endpointListener(history)],
      endpoints: history,
      write,
    });
    write(inputs.options.write(ONE, defaultMeshOptions));
  }

  list(kind: KindName, ...objects: readonly KubernetesObject[]): void {
    this.sink.replace(kind, objects);
  }

  put(object: KubernetesObject): void {
    this.sink.upsert(object.kind as KindName, object);
  }

  delete({ kind, metadata: { namespace = '', name } }: KubernetesObject): void {
    this.sink.delete(kind as KindName, namespace, name);
  }

  /** Addresses of the healthy endpoints of a Service; sorted. */
  served(service = 'reviews'): readonly string[] {
    this.#commit();
    const groups = this.graph.collections.find(({ name }) => name === 'endpointGroups') as Collection<EndpointGroup>;
    const group = groups.get(`shop/${service}.shop.svc.cluster.local`);
    const all = [...(group?.byPort.values() ?? [])].flat();
    return all.flatMap(({ address, health }) => (health === 'Healthy' ? [address] : [])).sort();
  }

  /** Addresses that no slice lists, of all Services; sorted. */
  held(): readonly string[] {
    this.#commit();
    return [...this.mesh.endpoints.held.held.entries()]
      .flatMap(([, { service, endpoints }]) => endpoints.map(({ address }) => `${service} ${address}`))
      .sort();
  }

  /** Of all that is remembered: whether anything new about Pods has come since. */
  confirmed(): readonly boolean[] {
    this.#commit();
    return [...this.mesh.inputs.lostEndpoints.entries()].flatMap(([, lost]) =>
      lost.endpoints.map(({ confirmed }) => confirmed),
    );
  }

  end(): void {
    this.#ending.abort();
  }

  #commit(): void {
    this.graph.commit(this.#writes.splice(0));
    for (const { error } of this.graph.failures.values()) throw error;
  }
}

const object = (kind: string, name: string, metadata: object, rest: object): KubernetesObject => {
  const apiVersion = kind === 'EndpointSlice' ? 'discovery.k8s.io/v1' : 'v1';
  return { apiVersion, kind, metadata: { name, namespace: 'shop', ...metadata }, ...rest };
};

const ports = [{ name: 'http', port: 8080, protocol: 'TCP' }];

export function service(name: string, annotations: Readonly<Record<string, string>> = {}, uid = `uid-${name}`) {
  const spec = { clusterIP: '10.96.0.1', ports: [{ name: 'http', port: 80 }], selector: { app: name } };
  return object('Service', name, { uid, annotations }, { spec });
}

export function pod(
  name: string,
  ip: string,
  { uid = `uid-${name}`, ready = true, app = 'reviews', hostNetwork = false } = {},
) {
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }];
  const spec = { nodeName: 'n', ...(hostNetwork && { hostNetwork }) };
  return object('Pod', name, { uid, labels: { app } }, { spec, status: { phase: 'Running', podIP: ip, conditions } });
}

export function slice(name: string, endpoints: readonly ListedEndpoint[], of = 'reviews') {
  return object(
    'EndpointSlice',
    name,
    { labels: { 'kubernetes.io/service-name': of } },
    {
      addressType: 'IPv4',
      ports,
      endpoints: endpoints.map(({ pod: name, ip, uid = `uid-${name}`, ready = true }) => ({
        addresses: [ip],
        conditions: { ready },
        targetRef: { kind: 'Pod', namespace: 'shop', name, uid },
      })),
    },
  );
}

export function legacy(name: string, endpoints: readonly ListedEndpoint[]) {
  const addresses = endpoints.map(({ pod: name, ip, uid = `uid-${name}` }) => ({
    ip,
    targetRef: { kind: 'Pod', namespace: 'shop', name, uid },
  }));
  return object('Endpoints', name, {}, { subsets: [{ addresses, ports }] });
}
