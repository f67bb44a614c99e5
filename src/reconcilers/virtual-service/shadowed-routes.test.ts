import { describe, expect, test } from 'vitest';
import { shadowedRoutes } from './shadowed-routes.ts';
import { reconcileVirtualService } from './virtual-service.ts';

const remarks = (spec: object): string[] => {
  const object = {
    apiVersion: 'networking.istio.io/v1',
    kind: 'VirtualService',
    metadata: { name: 'a', namespace: 'b' },
  };
  const context = { source: 'x', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] };
  const { models } = reconcileVirtualService({ ...object, spec: { hosts: ['a'], ...spec } }, context);
  expect(models).toHaveLength(1);
  return shadowedRoutes(models[0]!).map(
    ({ field, reason, message }) => `${reason} ${field} ${/: (.*) comes first/.exec(message)?.[1]}`,
  );
};

const route = [{ destination: { host: 'a' } }];
const http = (...matches: readonly (readonly object[] | undefined)[]): string[] =>
  remarks({ http: matches.map((match) => ({ route, ...(match === undefined ? {} : { match }) })) });
const prefix = (value: string, more: object = {}): object => ({ uri: { prefix: value }, ...more });

describe('a route that is never used is named, with the one before it', () => {
  test.each<[string, string[], string[]]>([
    [
      'behind a route without matches',
      http(undefined, [prefix('/a')], undefined),
      ['spec.http[1] spec.http[0]', 'spec.http[2] spec.http[0]'],
    ],
    ['behind the prefix of all paths', http([prefix('/')], [prefix('/a')]), ['spec.http[1] spec.http[0].match[0]']],
    [
      'behind a match without conditions',
      http([{ name: 'x' }], [{ method: { exact: 'GET' } }]),
      ['spec.http[1] spec.http[0].match[0]'],
    ],
    [
      'behind a regex of everything',
      http([{ uri: { regex: '.*' } }], undefined),
      ['spec.http[1] spec.http[0].match[0]'],
    ],
    [
      'behind the same match',
      http([{ uri: { exact: '/a' }, name: 'x' }], [{ uri: { exact: '/a' }, name: 'y' }]),
      ['spec.http[1].match[0] spec.http[0].match[0]'],
    ],
    [
      'behind the same headers in another order',
      http([{ headers: { a: { exact: '1' }, b: {} } }], [{ headers: { b: {}, a: { exact: '1' } } }]),
      ['spec.http[1].match[0] spec.http[0].match[0]'],
    ],
    [
      'behind a prefix of its path',
      http([prefix('/a')], [{ uri: { exact: '/ab' }, method: { exact: 'GET' } }, prefix('/a/b'), prefix('/b')]),
      ['spec.http[1].match[0] spec.http[0].match[0]', 'spec.http[1].match[1] spec.http[0].match[0]'],
    ],
    ['of tcp', remarks({ tcp: [{ route }, { route, match: [{ port: 80 }] }] }), ['spec.tcp[1] spec.tcp[0]']],
    [
      'of tls',
      remarks({
        tls: ['x', 'y'].map((subset) => ({
          match: [{ port: 443, sniHosts: ['a'] }],
          route: [{ destination: { host: 'a', subset } }],
        })),
      }),
      ['spec.tls[1].match[0] spec.tls[0].match[0]'],
    ],
  ])('%s', (_, found, expected) => {
    expect(found).toEqual(expected.map((each) => `Ineffective ${each}`));
  });

  test.each<[string, string[]]>([
    ['a longer prefix comes first', http([prefix('/a/b')], [prefix('/a')], undefined)],
    ['the prefix has more conditions', http([prefix('/a', { headers: { x: { exact: '1' } } })], [prefix('/a/b')])],
    ['the prefix is for one gateway', http([prefix('/a', { gateways: ['mesh'] })], [prefix('/a/b')])],
    ['the prefix is for one port', http([prefix('/', { port: 80 })], undefined)],
    ['the path may be in any case', http([prefix('/a')], [prefix('/A/b', { ignoreUriCase: true })])],
    ['a value of another condition', http([{ method: { exact: 'GET' } }], [{ method: { exact: 'PUT' } }], undefined)],
  ])('but not where %s', (_, found) => {
    expect(found).toEqual([]);
  });

  test('a delegate may leave requests over', () => {
    const delegate = { name: 'd', namespace: 'b' };
    expect(remarks({ http: [{ delegate }, { route }] })).toEqual([]);
    expect(
      remarks({
        http: [
          { delegate, match: [prefix('/a')] },
          { route, match: [prefix('/a')] },
        ],
      }),
    ).toEqual([]);
  });

  test('behind a prefix of its path, whatever the number of prefixes before', () => {
    const others = Array.from({ length: 300 }, (_, i) => [prefix(`/${'x'.repeat(i)}y`)]);
    expect(http(...others, [prefix('/a')], ...others.slice(0, 1), [prefix('/a/b')])).toEqual([
      'Ineffective spec.http[301].match[0] spec.http[0].match[0]',
      'Ineffective spec.http[302].match[0] spec.http[300].match[0]',
    ]);
  });

  test('the sentence says whether the earlier match takes the same, more, or everything', () => {
    const object = (spec: object) => ({
      apiVersion: 'networking.istio.io/v1' as const,
      kind: 'VirtualService' as const,
      metadata: { name: 'a', namespace: 'b' },
      spec: { hosts: ['a'], ...spec },
    });
    const context = {
      source: 'x',
      domainSuffix: 'cluster.local',
      rootNamespace: 'istio-system',
      defaultExportTo: ['*'],
    };
    const sentence = (...matches: object[][]): string[] =>
      reconcileVirtualService(object({ http: matches.map((match) => ({ match, route })) }), context)
        .models.flatMap(shadowedRoutes)
        .map(({ message }) => message);
    expect(sentence([prefix('/a')], [prefix('/a/b')])).toEqual([
      'is never used: spec.http[0].match[0] comes first and matches every path that begins with "/a"; move spec.http[0] after this route.',
    ]);
    expect(sentence([prefix('/a'), prefix('/a/b')])).toEqual([
      'is never used: spec.http[0].match[0] comes first and matches every path that begins with "/a"; remove this match.',
    ]);
    expect(sentence([prefix('/a')], [prefix('/a')])).toEqual([
      'is never used: spec.http[0].match[0] comes first and matches the same; remove one of them.',
    ]);
    expect(sentence([prefix('/'), prefix('/a')])).toEqual([
      'is never used: spec.http[0].match[0] comes first and matches everything; remove this match.',
    ]);
  });

  test('ten thousand routes are looked at without comparing each with each, and the first twenty are named', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => [prefix(`/${'x'.repeat(i % 500)}/${i}/`)]);
    expect(http(...many)).toEqual([]);
    expect(http(undefined, ...many)).toHaveLength(20);
  });
});
