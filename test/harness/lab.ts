import { TestMesh, connectedProxy } from './mesh.ts';
import { type CheckSound, createCheckSound } from './sound.ts';
import type { Publication } from '../../src/ads/store/publication.ts';
import type { ConnectedProxy } from '../../src/ads/types.ts';
import type { KubernetesObject } from '../../src/api/object.ts';

let checkSound: CheckSound | undefined;

/** A mesh that summarizes what its last commit changed, and what a proxy has. */
export class MeshLab extends TestMesh {
  last: Publication = { members: [], lists: [], worlds: [] };

  constructor(objects: readonly KubernetesObject[] = [], proxies: readonly ConnectedProxy[] = []) {
    super();
    this.graph.observe((draft) => {
      this.last = this.mesh.publicationOf(draft);
    });
    this.apply(objects);
    this.join(proxies);
  }

  /** Connects proxies in one commit. */
  join(proxies: readonly ConnectedProxy[]): void {
    this.commit(proxies.map((proxy) => this.mesh.inputs.proxies.write(proxy.stream, proxy)));
  }

  /** Every resource that the last commit changed, in any list, e.g. `Cluster outbound|80||a.shop.svc.cluster.local`. */
  get changed(): string[] {
    const names = this.last.members.map(
      ({ typeUrl, name }) => `${typeUrl.slice(typeUrl.lastIndexOf('.') + 1)} ${name}`,
    );
    return [...new Set(names)].sort();
  }

  size(collection: string): number {
    return this.graph.collections.find(({ name }) => name === collection)!.size;
  }

  /** Outbound clusters, named after the services and subsets that a proxy can reach: `a.shop:80`, `a.shop:80 v1`. */
  clusters(stream: string): string[] {
    return (this.json(stream).cds as { readonly name: string }[]).flatMap(({ name }) =>
      name.startsWith('outbound|') ? [short(name)] : [],
    );
  }

  /** Clusters that the routes of each virtual host in a table lead to, without the catch-all. */
  routes(stream: string, table = '80'): Record<string, string[]> {
    const found = (this.json(stream).rds as Table[]).find(({ name }) => name === table);
    const hosts = (found?.virtualHosts ?? []).filter(({ domains }) => domains[0] !== '*');
    return Object.fromEntries(
      hosts.map(({ name, routes = [] }) => [
        name.replace('.svc.cluster.local', ''),
        routes.map(({ route }) => short(route?.cluster ?? '')),
      ]),
    );
  }

  domains(stream: string, table = '80'): Record<string, string[]> {
    const found = (this.json(stream).rds as Table[]).find(({ name }) => name === table);
    return Object.fromEntries(
      (found?.virtualHosts ?? []).map(({ name, domains }) => [name.replace('.svc.cluster.local', ''), [...domains]]),
    );
  }

  /** What is wrong with everything that a proxy has, taken together. */
  faults(stream: string): string[] {
    checkSound ??= createCheckSound();
    return [...checkSound(this.snapshot(stream)), ...this.clashes(stream)];
  }
}

interface Table {
  readonly name: string;
  readonly virtualHosts?: readonly {
    readonly name: string;
    readonly domains: readonly string[];
    readonly routes?: readonly { readonly route?: { readonly cluster?: string } }[];
  }[];
}

function short(cluster: string): string {
  const [, port = '', subset = '', host = ''] = cluster.split('|');
  if (host === '') return cluster;
  return `${host.replace('.svc.cluster.local', '')}:${port}${subset === '' ? '' : ` ${subset}`}`;
}

interface More {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
}

/** `kind`, then `namespace/name`. */
export function objectOf(kind: string, path: string, content: object, more: More = {}): KubernetesObject {
  const [namespace = '', name = ''] = path.split('/');
  const apiVersion = CORE[kind] ?? 'networking.istio.io/v1';
  return { apiVersion, kind, metadata: { namespace, name, ...more }, ...content } as KubernetesObject;
}

const CORE: Readonly<Record<string, string>> = { Service: 'v1', Pod: 'v1', EndpointSlice: 'discovery.k8s.io/v1' };

/** A Service with one HTTP port. */
export function service(path: string, spec: object = {}, more: More = {}): KubernetesObject {
  return objectOf(
    'Service',
    path,
    { spec: { clusterIP: '10.0.0.1', ports: [{ name: 'http', port: 80 }], ...spec } },
    more,
  );
}

export function slice(path: string, ...addresses: string[]): KubernetesObject {
  const name = path.slice(path.indexOf('/') + 1);
  return objectOf(
    'EndpointSlice',
    `${path}-1`,
    {
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    },
    { labels: { 'kubernetes.io/service-name': name } },
  );
}

/** A VirtualService for `host` that leads to `to`. */
export function route(path: string, host: string, to: string, spec: object = {}, match?: object): KubernetesObject {
  const http = [{ ...(match && { match: [match] }), route: [{ destination: { host: to } }] }];
  return objectOf('VirtualService', path, { spec: { hosts: [host], http, ...spec } });
}

/** A DestinationRule with the subset v1. */
export function rule(path: string, host: string, spec: object = {}): KubernetesObject {
  return objectOf('DestinationRule', path, {
    spec: { host, subsets: [{ name: 'v1', labels: { version: 'v1' } }], ...spec },
  });
}

export function sidecar(path: string, ...hosts: string[]): KubernetesObject {
  return objectOf('Sidecar', path, { spec: { egress: [{ hosts }] } });
}

/** A sidecar proxy. Its stream: `name.namespace`. */
export function proxy(
  stream: string,
  labels: Readonly<Record<string, string>> = {},
  metadata: Readonly<Record<string, unknown>> = {},
): ConnectedProxy {
  const [name, namespace] = stream.split('.');
  return connectedProxy(stream, {
    id: `sidecar~10.1.0.1~${name}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, INSTANCE_IPS: '10.1.0.1', LABELS: labels, ...metadata },
  });
}
