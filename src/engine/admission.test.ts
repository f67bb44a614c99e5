import { expect, test } from 'vitest';
import type { ConnectedProxy } from '../ads/types.ts';
import { TestMesh, connectedProxy } from '../../test/harness/mesh.ts';
import { Admission } from './admission.ts';
import { DemandBudgets, type DemandLimits } from './demand-budgets.ts';

const one = { perPeer: 1, inAll: 1 };
const many = { perPeer: 9, inAll: 9 };

/** What was refused, and whether departed proxies were given up for it. */
function admissions(limits: Partial<DemandLimits>, ...proxies: readonly ConnectedProxy[]): string[] {
  const mesh = new TestMesh();
  const events: string[] = [];
  const all = { traits: many, scopes: many, routers: many, workloads: many, places: many, ...limits };
  const admission = new Admission({
    budgets: new DemandBudgets(
      () => all,
      () => 0,
    ),
    departures: { giveUp: () => events.push('gave up') },
    preview: (proxy) => mesh.mesh.classes.preview(proxy),
    portsOf: () => 1,
    refused: ({ kind }) => events.push(`refused for ${kind}`),
  });
  for (const proxy of proxies) admission.admit(proxy, '10.0.0.1');
  return events;
}

const proxy = (namespace: string, metadata: object = {}): ConnectedProxy =>
  connectedProxy(`a.${namespace}`, {
    id: `sidecar~10.0.0.1~a.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, ...metadata },
  });

test('departed proxies are given up for one that brings another scope', () => {
  expect(admissions({ scopes: one }, proxy('shop'), proxy('shop'), proxy('bank'))).toEqual([
    'gave up',
    'refused for scopes',
  ]);
});

test('but not for other traits, which go on counting without them', () => {
  expect(admissions({ traits: one }, proxy('shop'), proxy('shop', { DNS_CAPTURE: 'true' }))).toEqual([
    'refused for traits',
  ]);
});
