import type { Validate } from '../objects.ts';

/** A VirtualService that sends `host` to `to`. */
export function virtualService(name: string, to: string, namespace = 'shop'): string {
  return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: ${name}
  namespace: ${namespace}
spec:
  hosts:
  - ${name}
  http:
  - route:
    - destination:
        host: ${to}
`;
}

/** Stands for the schemas: hosts are strings, and there is at least one. */
export const validate: Validate = (object) => {
  const { hosts } = ((object as { spec?: unknown }).spec ?? {}) as { hosts?: unknown };
  if (Array.isArray(hosts) && hosts.every((host) => typeof host === 'string')) return [];
  return [{ field: 'spec.hosts', message: 'must be a list of strings', severity: 'error' }];
};
