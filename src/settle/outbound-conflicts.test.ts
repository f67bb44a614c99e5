import { expect, test } from 'vitest';
import type { L4Chain, ListenerClaim, OutboundChain } from '../model/listener.ts';
import type { Protocol } from '../model/service.ts';
import { resolveClaims } from './outbound-conflicts.ts';

const resolve = (claims: readonly ListenerClaim[]) =>
  resolveClaims(
    claims.map((claim) => ({ rank: 2, claim })),
    '0.0.0.0',
  );

const bindOf = (address: string) => ({ addresses: [address] as const, toPort: false });

function http(address = '0.0.0.0', more: { grpcWeb?: boolean; proxy?: boolean } = {}): ListenerClaim {
  return { kind: 'http', bind: bindOf(address), port: 9000, routes: '9000', grpcWeb: false, proxy: false, ...more };
}

/** A claim whose chains are written `names or ranges`; empty for everything. */
function l4(kind: 'tcp' | 'sniffed', host: string, matches: string[] = [''], protocol?: Protocol): ListenerClaim {
  return {
    kind,
    bind: bindOf('0.0.0.0'),
    port: 9000,
    protocol: protocol ?? (kind === 'tcp' ? 'TCP' : 'Unsupported'),
    host,
    namespace: 'shop',
    origins: [],
    routes: kind === 'tcp' ? '' : '9000',
    chains: matches.map((match): L4Chain => {
      const words = match.split(' ').filter((word) => word !== '');
      return {
        serverNames: words.filter((word) => /[a-z*]/.test(word)),
        subnets: words.filter((word) => !/[a-z*]/.test(word)),
        target: { clusters: [], weighted: false, statPrefix: host, protocol: 'TCP', hashSourceIp: false, origins: [] },
      };
    }),
  };
}

/** `sniffed http`, `http` or the host that has the chain, with what it matches. */
function print({ serverNames, subnets, plaintextHttp, serves }: OutboundChain): string {
  const what = serves.kind === 'http' ? 'http' : serves.chain.target.statPrefix;
  return [plaintextHttp ? 'sniffed' : '', what, ...serverNames, ...subnets].filter((word) => word !== '').join(' ');
}

test('without claims there is no listener', () => {
  expect(resolve([])).toBeUndefined();
});

test.each<[string, ListenerClaim[], string[], string[]]>([
  ['HTTP after HTTP changes nothing', [http(), http()], ['sniffed http'], []],
  ['TCP after HTTP', [http(), l4('tcp', 'a')], ['sniffed http', 'a'], []],
  ['HTTP after TCP', [l4('tcp', 'a'), http(), http()], ['a', 'sniffed http'], []],
  ['TCP after TCP loses', [l4('tcp', 'a'), l4('tcp', 'b')], ['a'], ['b to a']],
  [
    'a range that is written twice',
    [l4('tcp', 'a', ['10.0.0.0/8 10.1.2.3/8 ::1/64 0::2/64'])],
    ['a 10.0.0.0/8 ::1/64'],
    [],
  ],
  ['ranges of all addresses', [l4('tcp', 'a', ['0.0.0.0/1', '0.0.0.0/2'])], ['a'], ['a to a']],
  [
    'TCP after TCP gets the ranges that are free',
    [l4('tcp', 'a', ['10.0.0.0/8']), l4('tcp', 'b', ['10.1.2.3/8', '11.0.0.0/8']), l4('tcp', 'c')],
    ['a 10.0.0.0/8', 'b 11.0.0.0/8', 'c'],
    ['b to a'],
  ],
  [
    'server names are shared out',
    [l4('tcp', 'a', ['a.com']), l4('tcp', 'b', ['b.com a.com']), l4('tcp', 'c', ['A.com'])],
    ['a a.com', 'b b.com'],
    ['b to a', 'c to a'],
  ],
  ['TCP after sniffed loses', [l4('sniffed', 'a'), l4('tcp', 'b')], ['a', 'sniffed http'], ['b to a']],
  ['sniffed after TCP keeps its HTTP', [l4('tcp', 'a'), l4('sniffed', 'b')], ['a', 'sniffed http'], ['b to a']],
  [
    'sniffed after sniffed adds its other chains',
    [l4('sniffed', 'a', ['10.0.0.0/8']), l4('sniffed', 'b')],
    ['a 10.0.0.0/8', 'sniffed http', 'b'],
    [],
  ],
  ['sniffed after HTTP at the wildcard', [http(), l4('sniffed', 'a')], ['sniffed http', 'a'], []],
  ['sniffed replaces HTTP at an address', [http('10.0.0.1'), l4('sniffed', 'a')], ['a', 'sniffed http'], []],
  [
    'TCP after HTTP at an address gets ranges only',
    [http('10.0.0.1'), l4('tcp', 'a', ['10.0.0.0/8', ''])],
    ['http', 'a 10.0.0.0/8'],
    ['a to '],
  ],
  [
    'MySQL lets nobody in whom nothing distinguishes',
    [l4('tcp', 'a', [''], 'MySQL'), l4('tcp', 'b')],
    ['a'],
    ['b to a'],
  ],
  ['MySQL yields to younger HTTP', [l4('tcp', 'a', [''], 'MySQL'), http()], ['sniffed http'], ['a to ']],
  [
    'Mongo yields to younger server names',
    [l4('tcp', 'a', [''], 'Mongo'), l4('tcp', 'b', ['x.com'])],
    ['b x.com'],
    ['a to b'],
  ],
  [
    'ranges of Mongo yield to younger ranges',
    [l4('tcp', 'a', ['10.0.0.0/8'], 'Mongo'), l4('tcp', 'b', ['11.0.0.0/8'])],
    ['b 11.0.0.0/8'],
    ['a to b'],
  ],
  ['MySQL does not join others', [http(), l4('tcp', 'a', [''], 'Mongo')], ['sniffed http'], ['a to ']],
  [
    'MySQL joins MySQL',
    [l4('tcp', 'a', ['10.0.0.0/8'], 'MySQL'), l4('tcp', 'b', [''], 'MySQL')],
    ['a 10.0.0.0/8', 'b'],
    [],
  ],
  ['an HTTP proxy looks for nothing else', [l4('tcp', 'a'), http('0.0.0.0', { proxy: true }), http()], ['http'], []],
  ['names that Envoy refuses are left out', [l4('tcp', 'a', ['*foo.com', '*foo.com b.com'])], ['a b.com'], []],
  ['a star is any name', [l4('tcp', 'a', ['*']), l4('tcp', 'b')], ['a *'], ['b to a']],
])('%s', (_, claims, chains, conflicts) => {
  const resolved = resolve(claims)!;
  expect(resolved.chains.map(print)).toEqual(chains);
  expect(resolved.conflicts.map(({ loser, winner }) => `${loser.host} to ${winner}`)).toEqual(conflicts);
});

test('MySQL of the own namespace does not yield to what others export', () => {
  const claims = [
    { rank: 0, claim: l4('tcp', 'a', [''], 'MySQL') },
    { rank: 2, claim: http() },
  ];
  expect(resolveClaims(claims, '0.0.0.0')!.chains.map(print)).toEqual(['a']);
});

test('no claims, no listener', () => {
  expect(resolve([])).toBeUndefined();
});

test('many services with a name of their own share a port in no time that grows with their square', () => {
  const many = Array.from({ length: 5000 }, (_, i) => l4('tcp', `h${i}`, [`h${i}.com`]));
  expect(resolve(many)!.chains).toHaveLength(5000);
});
