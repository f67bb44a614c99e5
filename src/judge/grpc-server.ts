import type { AuthorizationStep } from '../model/authorization.ts';
import type { Labels } from '../model/labels.ts';
import { modeOfGrpcServer } from '../model/peer-authentication.ts';
import type { WorkloadAccess } from './judge.ts';

/** What a gRPC server without an Envoy makes of what decides about requests to its workload. */
export function accessAtGrpcServer(
  access: WorkloadAccess,
  local: readonly AuthorizationStep[],
  labels: Labels,
): WorkloadAccess {
  const { mode, ports } = access.peers;
  const steps = { external: [], local };
  return {
    ...access,
    isLibrary: true,
    peers: {
      mode: modeOfGrpcServer(mode, labels),
      ports: Object.fromEntries(Object.entries(ports).map(([port, own]) => [port, modeOfGrpcServer(own, labels)])),
    },
    targets: access.targets.map((target) => ({ ...target, protocol: 'GRPC' })),
    isRedirected: false,
    pathNormalization: 'NONE',
    http: steps,
    tcp: steps,
    issuers: [],
  };
}
