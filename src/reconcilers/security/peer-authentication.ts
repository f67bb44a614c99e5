import type { PeerAuthentication } from '../../api/gen/peer-authentication.gen.ts';
import type { Problem } from '../../api/problem.ts';
import type { MtlsMode, PeerAuthenticationModel } from '../../model/peer-authentication.ts';
import type { Field } from '../field.ts';
import { readPolicy, readSelector } from './policy-object.ts';

export interface ReconciledPeerAuthentication {
  readonly model: PeerAuthenticationModel;
  readonly problems: readonly Problem[];
}

/** An object with errors stays in force, as strictly as what can be read of it allows. */
export function reconcilePeerAuthentication(object: PeerAuthentication, source: string): ReconciledPeerAuthentication {
  const { base, spec, findings, isAstray } = readPolicy(object, source, readSelector);
  const levels = spec.get('portLevelMtls');
  const ports: Record<number, MtlsMode | undefined> = {};
  for (const [port, level] of levels.entries()) {
    if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
      level.invalid('is not a port; use a number from 1 to 65535.');
    else ports[Number(port)] = readMode(level);
  }
  if (levels.isSet && base.target.kind !== 'labels' && !isAstray)
    levels.invalid('requires a selector with matchLabels, and has no effect without one.');
  else if (levels.isSet && levels.entries().length === 0) levels.invalid('must have at least one port.');
  const mode = readMode(spec.get('mtls'));
  // It may be for workloads that another policy closes.
  const read = isAstray ? ({ mode: 'STRICT', ports: {} } as const) : { mode, ports };
  return { model: { ...base, ...read }, problems: findings.problems };
}

/** What cannot be read means STRICT. */
function readMode(level: Field): MtlsMode | undefined {
  const before = level.findings.invalidValues;
  const mode = level.expectObject().get('mode').oneOf('UNSET', 'STRICT', 'PERMISSIVE', 'DISABLE');
  if (level.findings.invalidValues > before) return 'STRICT';
  return mode === 'UNSET' ? undefined : mode;
}
