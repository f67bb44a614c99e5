import { type Endpoint, type EndpointSummary, isDraining } from './endpoint.ts';
import { type Labels, selects } from './labels.ts';
import { type MtlsUse, usesMtls } from './policy-resolution.ts';
import { type MeshService, type ServicePort, isDns } from './service.ts';

/**
 * The endpoints inside a cluster itself. Here Istio selects by port number, unlike in EDS, where the port name decides.
 */
export function dnsEndpointsOf(
  endpoints: readonly Endpoint[],
  { name, number }: Pick<ServicePort, 'name' | 'number'>,
  subsetLabels: Labels,
): readonly Endpoint[] {
  return endpoints.filter(
    (endpoint) =>
      (endpoint.servicePort === undefined ? endpoint.portName === name : endpoint.servicePort === number) &&
      selects(subsetLabels, endpoint.labels) &&
      !isDraining(endpoint),
  );
}

/** Those that take connections with mutual TLS. */
export function withMtls(endpoints: readonly Endpoint[], use: MtlsUse): readonly Endpoint[] {
  return endpoints.filter((endpoint) => endpoint.tlsMode === 'istio' && usesMtls(endpoint, use));
}

/** Whether a service port has a cluster: a cluster for which Envoy would have nothing to resolve is left out. */
export function isServed(service: MeshService, port: number, subsetLabels: Labels, summary: EndpointSummary): boolean {
  if (!isDns(service)) return true;
  const { name = '' } = service.ports.find(({ number }) => number === port) ?? {};
  return dnsEndpointsOf(summary.dnsEndpoints, { name, number: port }, subsetLabels).length > 0;
}
