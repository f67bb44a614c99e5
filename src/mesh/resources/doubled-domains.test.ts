import { expect, test } from 'vitest';
import { testEncoder } from '../../../test/harness/mesh.ts';
import { Graph } from '../../cache/graph.ts';
import { declareDoubledDomains, withoutDomains } from './doubled-domains.ts';
import type { ScopeViews, View } from '../clients/scopes.ts';
import type { VirtualHostEntry } from './virtual-hosts.ts';

interface Has {
  /** `namespace/host` */
  readonly of: string;
  readonly domains: readonly string[];
  readonly view?: string;
  readonly local?: boolean;
  readonly table?: string;
}

function entry({
  of,
  domains,
  view: key = `${of.slice(0, of.indexOf('/'))}@1`,
  local = false,
  table = '80',
}: Has): VirtualHostEntry {
  const [namespace = '', host = ''] = of.split('/');
  const part = testEncoder().virtualHost({ name: `${host}:80`, domains });
  const list = `${key}${local ? '~' : ''}/0`;
  const view = { key } as View;
  return { place: { list, view, local, table, host, namespace, declares: true, domains }, part };
}

/** A scope that has views in one egress listener, of which one may be its own namespace's. */
function scope(views: readonly string[], local = ''): ScopeViews {
  const outlets = [{ listener: { bind: '', bindToPort: false, hosts: [] }, views: views.map((key) => ({ key })) }];
  return { outlets, local, policy: '' } as unknown as ScopeViews;
}

/** Who loses what to whom, and what is reported. */
function losses(hosts: readonly Has[], scopes: readonly ScopeViews[]): string[] {
  const graph = new Graph();
  const virtualHosts = graph.input<VirtualHostEntry>('hosts');
  const ofScopes = graph.input<ScopeViews>('scopes');
  const byView = graph.index('scopes by view', ofScopes, (_, { outlets }) =>
    outlets.flatMap(({ views }) => views.map((view) => view.key)),
  );
  const lost = declareDoubledDomains(graph, [virtualHosts], byView);
  graph.commit([
    ...hosts.map((has, i) => virtualHosts.write(`${i}`, entry(has))),
    ...scopes.map((value, i) => ofScopes.write(`${i}`, value)),
  ]);
  const found = [...lost.entries()].flatMap(([piece, members]) =>
    (members as unknown as { value: { loser: string; winner: string; domain: string } }[]).map(
      ({ value: { loser, winner, domain } }) => `${piece}: ${loser} loses ${domain} to ${winner}`,
    ),
  );
  expect(graph.failures.size).toBe(found.length);
  return found;
}

const a = { of: 'shop/a.shop.svc.cluster.local', domains: ['a.shop.svc.cluster.local', 'a.shop'] };

test.each<[string, Has]>([
  ['a short form', { of: 'other/a.shop', domains: ['a.shop'] }],
  ['a full name', { of: 'other/b.shop', domains: ['b.shop', 'a.shop.svc.cluster.local'] }],
])('the later of two hosts loses %s, and that is reported', (_, rival) => {
  const domain = rival.domains.at(-1)!;
  expect(losses([a, rival], [scope(['shop@1', 'other@1'])])).toEqual([`other@1/0|80: 1 loses ${domain} to 0`]);
});

test.each<[string, Has, ScopeViews]>([
  ['in another table', { of: 'other/a.shop', domains: ['a.shop'], table: '81' }, scope(['shop@1', 'other@1'])],
  ['with another domain', { of: 'other/a.shop', domains: ['a.shop.'] }, scope(['shop@1', 'other@1'])],
  [
    'in a view that no proxy has beside',
    { of: 'other/a.shop', domains: ['a.shop'], view: 'other@2' },
    scope(['shop@1', 'other@1']),
  ],
  ['in another view of the namespace', { ...a, view: 'shop@2' }, scope(['shop@1', 'shop@2'])],
  [
    'as a local name elsewhere',
    { of: 'other/a.shop', domains: ['a.shop'], view: 'other@1', local: true },
    scope(['shop@1', 'other@1'], 'shop@1'),
  ],
])('nobody loses to a host %s', (_, rival, proxies) => {
  expect(losses([a, rival], [proxies])).toEqual([]);
});

test('what is left of a virtual host has its other domains; without any it goes, and beside one of its name too', () => {
  const { part } = entry(a);
  const lost = { piece: '', loser: '', winner: '', domain: 'a.shop', sameHost: false };
  const left = withoutDomains(part, [lost], testEncoder());
  expect(testEncoder().virtualHostsOf(left!)).toEqual([
    { name: 'a.shop.svc.cluster.local:80', domains: ['a.shop.svc.cluster.local'] },
  ]);
  expect(
    withoutDomains(
      part,
      a.domains.map((domain) => ({ ...lost, domain })),
      testEncoder(),
    ),
  ).toBeUndefined();
  expect(withoutDomains(part, [{ ...lost, sameHost: true }], testEncoder())).toBeUndefined();
});
