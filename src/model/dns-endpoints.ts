import { type Endpoint, type EndpointSummary, isDraining } from './endpoint.ts';
import { type Labels, selected } from './labels.ts';
import { type MtlsUse, usesMtls } from './policy-resolution.ts';
import { remembered } from './remembered.ts';
import { type MeshService, type ServicePort, isDns, portNumbered } from './service.ts';

/**
 * The endpoints inside a cluster itself. Here Istio selects by port number, unlike in EDS, where the port name decides.
 */
export function dnsEndpointsOf(
  endpoints: readonly Endpoint[],
  { name, number }: Pick<ServicePort, 'name' | 'number'>,
  subsetLabels: Labels,
): readonly Endpoint[] {
  return selected(ofPort(endpoints, name, number), subsetLabels).filter((endpoint) => !isDraining(endpoint));
}

/** In their order. */
function ofPort(endpoints: readonly Endpoint[], name: string, number: number): readonly Endpoint[] {
  const { byNumber, byName } = byPort(endpoints);
  const [numbered = [], named = []] = [byNumber.get(number), byName.get(name)];
  if (numbered.length === 0 || named.length === 0) return numbered.length === 0 ? named : numbered;
  const both = new Set([...numbered, ...named]);
  return endpoints.filter((endpoint) => both.has(endpoint));
}

const byPort = remembered((endpoints: readonly Endpoint[]) => ({
  byNumber: Map.groupBy(
    endpoints.filter(({ servicePort }) => servicePort !== undefined),
    ({ servicePort }) => servicePort,
  ),
  byName: Map.groupBy(
    endpoints.filter(({ servicePort }) => servicePort === undefined),
    ({ portName }) => portName,
  ),
}));

/** The endpoints that take connections with mutual TLS. */
export function withMtls(endpoints: readonly Endpoint[], use: MtlsUse): readonly Endpoint[] {
  return endpoints.filter((endpoint) => endpoint.tlsMode === 'istio' && usesMtls(endpoint, use));
}

/** Whether a service port has a cluster: a cluster for which Envoy would have nothing to resolve is left out. */
export function isServed(service: MeshService, port: number, subsetLabels: Labels, summary: EndpointSummary): boolean {
  if (!isDns(service)) return true;
  const { name = '' } = portNumbered(service.ports, port) ?? {};
  return dnsEndpointsOf(summary.dnsEndpoints, { name, number: port }, subsetLabels).length > 0;
}
