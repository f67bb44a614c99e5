import { expect, test } from 'vitest';
import { type PeerModes, acceptingAll } from './peer-authentication.ts';

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
