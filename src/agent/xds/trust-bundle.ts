import { eachField, readDeltaResponse } from './messages.ts';
import type { OwnType } from './relay.ts';

const PROXY_CONFIG = 'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig';

/** The roots of the mesh, which the control plane sends before it signs with a new one. */
export function trustBundle(trust: (roots: readonly string[]) => Promise<void>): OwnType {
  return {
    typeUrl: PROXY_CONFIG,
    // It is small, and always sent.
    versions: () => new Map(),
    // Acknowledged once the workload has a certificate that all of them accept.
    receive: (response) => trust(readDeltaResponse(response).resources.flatMap(({ value }) => rootsOf(value))),
  };
}

/** `ca_certificates_pem` 34. */
function rootsOf(message: Uint8Array): readonly string[] {
  const roots: string[] = [];
  eachField(message, (field, reader) => {
    if (field !== 34) return false;
    roots.push(reader.string());
    return true;
  });
  return roots;
}
