import type { MeshService, ServicePort } from './service.ts';

/** The values for the placeholders in `outboundClusterStatName` and `inboundClusterStatName`. */
export interface StatSubject {
  readonly service: Pick<MeshService, 'host' | 'name' | 'namespace' | 'registry'>;
  readonly port: Pick<ServicePort, 'number' | 'name'>;
  readonly subset?: string;
  readonly targetPort?: number | string;
}

/** A statistics prefix from the mesh's pattern. */
export function statName(pattern: string, { service, port, subset = '', targetPort = 0 }: StatSubject): string {
  const kubernetes = service.registry === 'Kubernetes';
  const values: Readonly<Record<string, string>> = {
    '%SERVICE%': kubernetes ? `${service.name}.${service.namespace}` : service.host,
    '%SERVICE_NAME%': kubernetes ? service.name : service.host,
    '%SERVICE_FQDN%': service.host,
    '%SERVICE_PORT%': String(port.number),
    '%SERVICE_PORT_NAME%': port.name,
    '%SUBSET_NAME%': subset,
    '%TARGET_PORT%': String(targetPort),
  };
  return pattern.replace(/%[A-Z_]+%/g, (placeholder) => values[placeholder] ?? placeholder);
}

/** The semicolon ends a name that itself contains dots, colons and bars: Istio's telemetry splits there. */
export function altStatName(clusterName: string, pattern: string, subject: StatSubject): string {
  return `${pattern === '' ? clusterName : statName(pattern, subject)};`;
}
