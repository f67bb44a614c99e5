import type { KubernetesObject } from '../../src/api/object.ts';

type Fields = Readonly<Record<string, unknown>>;

export function object(apiVersion: string, kind: string, name: string, fields: Fields, namespace = 'shop') {
  return { apiVersion, kind, metadata: { name, namespace }, ...fields } satisfies KubernetesObject;
}

const networking = (kind: string) => (name: string, spec: Fields, namespace?: string) => ({
  ...object('networking.istio.io/v1', kind, name, {}, namespace),
  spec,
});

export const virtualService = networking('VirtualService');
export const destinationRule = networking('DestinationRule');
export const gateway = networking('Gateway');
export const serviceEntry = networking('ServiceEntry');
export const sidecar = networking('Sidecar');
export const workloadEntry = networking('WorkloadEntry');

/** A Service with an HTTP port 80. */
export function service(name: string, ip: string, namespace?: string) {
  const ports = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }];
  return object(
    'v1',
    'Service',
    name,
    { spec: { type: 'ClusterIP', clusterIP: ip, ports, selector: { app: name } } },
    namespace,
  );
}

/** Ready endpoints of that port; an endpoint may be an address, or an object with one. */
export function slice(name: string, endpoints: readonly (string | Fields)[], suffix = 'a') {
  const { metadata, ...rest } = object('discovery.k8s.io/v1', 'EndpointSlice', `${name}-${suffix}`, {
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: endpoints.map((each) =>
      typeof each === 'string'
        ? { addresses: [each], conditions: { ready: true } }
        : { conditions: { ready: true }, ...each },
    ),
  });
  return { ...rest, metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } } };
}

/** What has been deprecated for years, and is still written for Services without selector. */
export function legacyEndpoints(name: string, ips: readonly string[]) {
  const ports = [{ name: 'http', port: 8080, protocol: 'TCP' }];
  return object('v1', 'Endpoints', name, { subsets: [{ addresses: ips.map((ip) => ({ ip })), ports }] });
}

export function pod(name: string, ip: string, labels: Readonly<Record<string, string>>, nodeName = 'node-a') {
  const { metadata, ...rest } = object('v1', 'Pod', name, {
    spec: { nodeName, containers: [{ name: 'app', image: 'app' }] },
    status: { phase: 'Running', podIP: ip, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  return { ...rest, metadata: { ...metadata, labels } };
}

/** Of an endpoint: which Pod it is. */
export function target(name: string, ip: string) {
  return { addresses: [ip], targetRef: { kind: 'Pod', name, namespace: 'shop' } };
}

export function node(name: string, region: string, zone: string) {
  const labels = { 'topology.kubernetes.io/region': region, 'topology.kubernetes.io/zone': zone };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } };
}

export function namespace(name: string, metadata: Fields) {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...metadata } };
}

export function meshConfig(mesh: string, name = 'istio') {
  return object('v1', 'ConfigMap', name, { data: { mesh } }, 'istio-system');
}
