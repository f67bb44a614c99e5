import type { KubernetesObject } from '../src/api/object.ts';

export interface ScaleOptions {
  readonly services: number;
  readonly namespaces: number;
  readonly endpoints: number;
  /** Every fifth service has a VirtualService and a DestinationRule with two subsets. */
  readonly routes: boolean;
}

const meta = (name: string, namespace: string, labels: Record<string, string> = {}) => ({
  name,
  namespace,
  labels,
  generation: 1,
});

export const namespaceOf = (i: number, { namespaces }: Pick<ScaleOptions, 'namespaces'>): string =>
  `ns-${i % namespaces}`;

/** Services with one port, all alike, spread over the namespaces. */
export function scaleObjects(options: ScaleOptions): KubernetesObject[] {
  const objects: KubernetesObject[] = [];
  for (let i = 0; i < options.services; i++) {
    objects.push(service(i, options), slice(i, options, options.endpoints));
    if (options.routes && i % 5 === 0) objects.push(virtualService(i, options, 80), destinationRule(i, options));
  }
  return objects;
}

export function service(
  i: number,
  options: Pick<ScaleOptions, 'namespaces'>,
  labels: Record<string, string> = {},
): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta(`s-${i}`, namespaceOf(i, options), labels),
    spec: {
      clusterIP: `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`,
      selector: { app: `s-${i}` },
      ports: [{ name: 'http', port: 8080, targetPort: 8080 }],
    },
  } as KubernetesObject;
}

export function slice(
  i: number,
  options: Pick<ScaleOptions, 'namespaces'>,
  endpoints: number,
  shift = 0,
): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: meta(`s-${i}-x`, namespaceOf(i, options), { 'kubernetes.io/service-name': `s-${i}` }),
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, e) => ({
      addresses: [`10.${(i >> 8) & 127}.${i & 255}.${(e + shift) & 255}`],
      conditions: { ready: true },
    })),
  } as unknown as KubernetesObject;
}

export function virtualService(i: number, options: Pick<ScaleOptions, 'namespaces'>, weight: number): KubernetesObject {
  const host = `s-${i}`;
  return {
    apiVersion: 'networking.istio.io/v1',
    kind: 'VirtualService',
    metadata: { ...meta(host, namespaceOf(i, options)), generation: weight },
    spec: {
      hosts: [host],
      http: [
        {
          route: [
            { destination: { host, subset: 'v1' }, weight },
            { destination: { host, subset: 'v2' }, weight: 100 - weight },
          ],
          timeout: '5s',
        },
      ],
    },
  } as unknown as KubernetesObject;
}

export function destinationRule(i: number, options: Pick<ScaleOptions, 'namespaces'>): KubernetesObject {
  return {
    apiVersion: 'networking.istio.io/v1',
    kind: 'DestinationRule',
    metadata: meta(`s-${i}`, namespaceOf(i, options)),
    spec: {
      host: `s-${i}`,
      trafficPolicy: { outlierDetection: { consecutive5xxErrors: 5 } },
      subsets: [
        { name: 'v1', labels: { version: 'v1' } },
        { name: 'v2', labels: { version: 'v2' } },
      ],
    },
  } as unknown as KubernetesObject;
}
