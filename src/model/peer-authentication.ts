import { type Labels, saysMutualTls } from './labels.ts';
import type { PolicyObject } from './policy-target.ts';
import type { Source } from './provenance.ts';

/** What a port accepts: mutual TLS, plaintext, or both (PERMISSIVE). */
export type MtlsMode = 'STRICT' | 'PERMISSIVE' | 'DISABLE';

/** A PeerAuthentication. */
export interface PeerAuthenticationModel extends PolicyObject {
  /** Undefined: inherited. */
  readonly mode: MtlsMode | undefined;
  /** By the port on which the workload itself listens; undefined: the same as for the others. */
  readonly ports: Readonly<Record<number, MtlsMode | undefined>>;
}

/** What a workload accepts. */
export interface PeerModes {
  readonly mode: MtlsMode;
  /** Ports with a mode of their own. */
  readonly ports: Readonly<Record<number, MtlsMode>>;
}

/** What a gRPC server without an Envoy speaks under a mode: it cannot tell mutual TLS and plaintext apart. */
export function modeOfGrpcServer(mode: MtlsMode, labels: Labels): Exclude<MtlsMode, 'PERMISSIVE'> {
  // Clients that choose by themselves speak mutual TLS to those that say so.
  if (mode === 'PERMISSIVE') return saysMutualTls(labels) ? 'STRICT' : 'DISABLE';
  return mode;
}

/** The policies in force for a workload, if any. */
export interface PeerAuthentications {
  readonly mesh?: PeerAuthenticationModel | undefined;
  readonly namespace?: PeerAuthenticationModel | undefined;
  readonly workload?: PeerAuthenticationModel | undefined;
}

/** The narrower policy wins; what it leaves unset is inherited from the wider one. */
export function peerModes({ mesh, namespace, workload }: PeerAuthentications): PeerModes {
  const mode = workload?.mode ?? namespace?.mode ?? mesh?.mode ?? 'PERMISSIVE';
  const ports: Record<number, MtlsMode> = {};
  for (const [port, own] of Object.entries(workload?.ports ?? {})) ports[Number(port)] = own ?? mode;
  return { mode, ports };
}

/**
 * What a server accepts whose clients may still go by former modes. Clients use mutual TLS unless it is disabled, so
 * between STRICT and PERMISSIVE nothing changes for them, and the newest counts at once.
 */
export function acceptingAll(newest: PeerModes, former: readonly PeerModes[]): PeerModes {
  const all = [newest, ...former];
  const acceptedOn = (of: (modes: PeerModes) => MtlsMode): MtlsMode =>
    new Set(all.map((modes) => of(modes) === 'DISABLE')).size > 1 ? 'PERMISSIVE' : of(newest);
  const mode = acceptedOn((modes) => modes.mode);
  const ports: Record<number, MtlsMode> = {};
  for (const port of new Set(all.flatMap((modes) => Object.keys(modes.ports).map(Number)))) {
    const own = acceptedOn((modes) => modes.ports[port] ?? modes.mode);
    if (Object.hasOwn(newest.ports, port) || own !== mode) ports[port] = own;
  }
  return { mode, ports };
}

/** What sets the mode of a port, or undefined if nothing does. */
export function sourceOfMode({ mesh, namespace, workload }: PeerAuthentications, port: number): Source | undefined {
  if (workload?.ports[port] !== undefined) return { object: workload.ref, field: `spec.portLevelMtls["${port}"].mode` };
  const policy = [workload, namespace, mesh].find((one) => one?.mode !== undefined);
  return policy && { object: policy.ref, field: 'spec.mtls.mode' };
}
