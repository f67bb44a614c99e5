import { createValidator } from '../../api/validate.ts';

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

export const validate = createValidator();
