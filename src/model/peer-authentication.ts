import type { PolicyObject } from './policy-target.ts';

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
