import { expect, test } from 'vitest';
import { type AgedClaim, type ListenerClaim, sortClaims, summariseClaims } from './listener.ts';

const bind = { addresses: ['0.0.0.0'] as const, toPort: false };
const http = (proxy = false): ListenerClaim => ({ kind: 'http', bind, port: 80, routes: '80', grpcWeb: false, proxy });
const tcp = (host: string): ListenerClaim => ({
  kind: 'tcp',
  bind,
  port: 80,
  protocol: 'TCP',
  host,
  namespace: 'shop',
  origins: [],
  routes: '',
  chains: [],
});
const aged = (createdAt: string, claim: ListenerClaim, name = 'a'): AgedClaim => ({
  rank: 2,
  age: { createdAt, name, namespace: 'shop' },
  claim,
});

test('what a thousand HTTP services ask of a port is the claim of the oldest', () => {
  const claims = Array.from({ length: 1000 }, (_, i) => aged(String(2000 - i), http(), `s${i}`));
  const sorted = sortClaims(claims);
  expect(summariseClaims(sorted)).toEqual([aged('1001', http(), 's999')]);
});

test('claims of other protocols stay, in order of age', () => {
  const claims = [aged('3', tcp('c')), aged('1', http()), aged('2', tcp('b')), aged('4', http())];
  const summary = summariseClaims(sortClaims(claims));
  expect(summary.map(({ age }) => age.createdAt)).toEqual(['1', '2', '3']);
});

test('summaries of parts come to the summary of the whole', () => {
  const claims = [
    aged('1', http(true)),
    aged('2', http()),
    aged('3', tcp('b')),
    aged('4', http()),
    aged('5', http(true)),
  ];
  const whole = summariseClaims(sortClaims(claims));
  for (let cut = 0; cut <= claims.length; cut++) {
    const parts = [claims.slice(cut), claims.slice(0, cut)].flatMap((part) => summariseClaims(sortClaims(part)));
    expect(summariseClaims(sortClaims(parts))).toEqual(whole);
  }
});
