import { expect, test } from 'vitest';
import {
  type MtlsMode,
  type PeerAuthenticationModel,
  type PeerModes,
  acceptingAll,
  peerModes,
} from './peer-authentication.ts';

const [strict, permissive, disable] = (['STRICT', 'PERMISSIVE', 'DISABLE'] as const).map((mode): PeerModes => ({
  mode,
  ports: {},
})) as [PeerModes, PeerModes, PeerModes];

test.each<[string, PeerModes, PeerModes, PeerModes]>([
  ['clients change to plaintext', disable, strict, permissive],
  ['clients change to mutual TLS', strict, disable, permissive],
  ['a server closes itself to plaintext at once', strict, permissive, strict],
  ['a server opens itself to plaintext at once', permissive, strict, permissive],
  ['nothing changes', disable, disable, disable],
  [
    'one port changes',
    { mode: 'STRICT', ports: { 80: 'DISABLE', 81: 'STRICT' } },
    { mode: 'STRICT', ports: { 80: 'STRICT' } },
    { mode: 'STRICT', ports: { 80: 'PERMISSIVE', 81: 'STRICT' } },
  ],
  [
    'a port has a mode of its own no longer',
    strict,
    { mode: 'STRICT', ports: { 80: 'DISABLE' } },
    { mode: 'STRICT', ports: { 80: 'PERMISSIVE' } },
  ],
  [
    'all ports change but one',
    { mode: 'DISABLE', ports: { 80: 'STRICT' } },
    strict,
    { mode: 'PERMISSIVE', ports: { 80: 'STRICT' } },
  ],
])('%s', (_, newest, former, expected) => {
  expect(acceptingAll(newest, [newest, former])).toEqual(expected);
});

test.each<[string, (MtlsMode | undefined)[], Record<number, MtlsMode | undefined>, PeerModes]>([
  ['nothing is said', [], {}, { mode: 'PERMISSIVE', ports: {} }],
  [
    'a port without a mode has that of its workload',
    ['DISABLE', 'DISABLE', 'STRICT'],
    { 80: undefined },
    only('STRICT'),
  ],
  ['... of the namespace', ['DISABLE', 'STRICT', undefined], { 80: undefined }, only('STRICT')],
  ['... of the mesh', ['STRICT', undefined, undefined], { 80: undefined }, only('STRICT')],
  [
    'a port has its own',
    ['STRICT', 'STRICT', 'STRICT'],
    { 80: 'DISABLE' },
    { mode: 'STRICT', ports: { 80: 'DISABLE' } },
  ],
])('of several policies, the narrower one wins: %s', (_, [mesh, namespace, workload], ports, expected) => {
  const policy = (mode: MtlsMode | undefined) => ({ mode, ports: {} }) as PeerAuthenticationModel;
  expect(
    peerModes({ mesh: policy(mesh), namespace: policy(namespace), workload: { ...policy(workload), ports } }),
  ).toEqual(expected);
});

function only(mode: MtlsMode): PeerModes {
  return { mode, ports: { 80: mode } };
}
