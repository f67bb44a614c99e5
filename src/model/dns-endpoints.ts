import { type Endpoint, type EndpointSummary, isDraining } from './endpoint.ts';
import { type Labels, selects } from './labels.ts';
import { type MeshService, type ServicePort, isDns } from './service.ts';

/** Those that stand in a cluster itself. Unlike in EDS, where the name of the port decides, Istio goes by its number here. */
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

/** Whether a port of a service has a cluster: one that Envoy would look nothing up for is left out. */
export function isServed(service: MeshService, port: number, subsetLabels: Labels, summary: EndpointSummary): boolean {
  if (!isDns(service)) return true;
  const { name = '' } = service.ports.find(({ number }) => number === port) ?? {};
  return dnsEndpointsOf(summary.dnsEndpoints, { name, number: port }, subsetLabels).length > 0;
}
