import { expect, test } from 'vitest';
import type { ObjectReport, ProxyReport, StatusReport, TypeReport } from '../debug/status-report.ts';
import { printProxies, printStatus } from './status-text.ts';

const AT = Date.parse('2026-01-01T12:00:00Z');
const ago = (seconds: number): string => new Date(AT - seconds * 1_000).toISOString();

const synced: TypeReport = { synced: true, owed: 0, rejected: [], rejectedCount: 0, overdue: [] };

const proxy = (name: string, changes: Partial<ProxyReport> = {}): ProxyReport => ({
  ...{ proxy: name, node: `sidecar~10.0.0.1~${name}~x`, stream: `s${name}`, build: 'envoy 1.40.0' },
  ...{ connectedSince: ago(3 * 3_600), synced: true, types: { cds: synced }, waitedForBy: [], waitedForByCount: 0 },
  ...changes,
});

const object = (changes: Partial<ObjectReport> = {}): ObjectReport => ({
  ...{ object: 'VirtualService/shop/a', generation: 2, isDeleted: false, since: ago(15), state: 'waiting' },
  ...{ waiting: [], waitingCount: 0, rejections: [], rejectingCount: 0 },
  ...changes,
});

const report = (
  proxies: readonly ProxyReport[],
  objects: readonly ObjectReport[],
  changes: Partial<StatusReport> = {},
): StatusReport => ({
  ...{ replica: 'fairlead-a', version: '1', at: new Date(AT).toISOString(), proxies, objects, held: [] },
  ...changes,
});

const waiting = (...names: readonly string[]): ObjectReport['waiting'] =>
  names.map((name) => ({ proxy: name, stream: `s${name}`, since: ago(10) }));

const rejection = {
  ...{
    proxy: 'bad.shop',
    build: 'envoy 1.40.0',
    typeUrl: 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration',
  },
  ...{ name: '80', message: 'bad\nweights' },
};

test('deleted objects that are not followed any more are counted', () => {
  const text = printStatus([report([], []), report([], [], { unfollowed: 3 })]);
  expect(text).toContain('3 more deleted objects may not have reached all proxies.\n');
});

test('endpoints that are held are listed', () => {
  const held = [{ service: 'shop/reviews', address: '10.1.0.1', pod: 'shop/r-1', since: ago(90), until: ago(-210) }];
  const text = printStatus([report([], [], { held })]);
  expect(text).toContain('HELD FOR');
  expect(text).toMatch(/^shop\/reviews +10\.1\.0\.1 +shop\/r-1 +\S+ ago$/m);
});

test('proxies with trouble come first, and objects say who is waited for, or who rejects them and why', () => {
  const rejecting = { ...synced, rejected: ['80'], rejectedCount: 1, error: 'bad weights' };
  const behind = { ...synced, synced: false, owed: 3, unansweredSince: ago(300) };
  const proxies = [
    proxy('a.shop'),
    proxy('late.shop', { synced: false, behindSince: ago(300), types: { cds: behind }, waitedForByCount: 2 }),
    proxy('bad.shop', { types: { rds: rejecting }, waitedForByCount: 1, build: '' }),
  ];
  const objects = [
    object({ waiting: waiting('p1', 'p2', 'p3', 'p4', 'p5', 'p6'), waitingCount: 1_000 }),
    object({
      object: 'Gateway/shop/g',
      since: ago(86_400 * 3),
      isDeleted: true,
      waiting: waiting('p1'),
      waitingCount: 1,
    }),
    object({ object: 'Sidecar/shop/s', state: 'rejected', inForce: 1, rejections: [rejection], rejectingCount: 1 }),
    object({ object: 'Sidecar/shop/t', inForce: 'nothing' }),
  ];
  expect(printStatus([report(proxies, objects)]).split('\n')).toEqual([
    'PROXY      BUILD         CONNECTED  STATE      WAITED FOR BY',
    'bad.shop   -             3h         REJECTS 1  1 object',
    'late.shop  envoy 1.40.0  3h         BEHIND 5m  2 objects',
    'a.shop     envoy 1.40.0  3h         SYNCED     -',
    '',
    'OBJECT                 GENERATION  SINCE    STATE',
    'Gateway/shop/g         deleted     3d ago   waits for p1',
    'Sidecar/shop/s         2           15s ago  rejected by bad.shop: RouteConfiguration 80: "bad\\nweights"; generation 1 is in force',
    'Sidecar/shop/t         2           15s ago  on its way; nothing of it is in force',
    'VirtualService/shop/a  2           15s ago  waits for p1, p2, p3, p4, p5 and 995 more',
    '',
  ]);
});

test('an object is one line for all replicas with the same generation of it', () => {
  const text = printStatus([
    report([proxy('p1')], [object({ waiting: waiting('p1'), waitingCount: 1 })]),
    // Its clock is an hour ahead.
    report(
      [proxy('p2', { connectedSince: ago(-3_590) })],
      [object({ since: ago(20 - 3_600), waiting: waiting('p2'), waitingCount: 1 })],
      { replica: 'fairlead-b', at: ago(-3_600) },
    ),
    report([], [object({ generation: 1, waiting: waiting('p3'), waitingCount: 1 })]),
  ]);
  expect(text.split('\n')).toEqual([
    'PROXY  BUILD         CONNECTED  STATE   WAITED FOR BY  REPLICA',
    'p1     envoy 1.40.0  3h         SYNCED  -              fairlead-a',
    'p2     envoy 1.40.0  10s        SYNCED  -              fairlead-b',
    '',
    'OBJECT                 GENERATION  SINCE    STATE',
    'VirtualService/shop/a  2           20s ago  waits for p1, p2',
    'VirtualService/shop/a  1           15s ago  waits for p3',
    '',
  ]);
});

test('one proxy is shown by type, with the objects that wait for it or that it rejects', () => {
  const types = {
    cds: { ...synced, synced: false, owed: 3, unansweredSince: ago(90), overdue: ['cold'] },
    rds: { ...synced, rejected: ['80', '81'], rejectedCount: 7, error: 'bad weights' },
  };
  const objects = [
    object({ waiting: waiting('bad.shop'), waitingCount: 9 }),
    object({ object: 'Sidecar/shop/s', state: 'rejected', inForce: 1, rejections: [rejection], rejectingCount: 1 }),
    object({ object: 'Gateway/shop/g', waiting: waiting('p1'), waitingCount: 1 }),
  ];
  const one = proxy('bad.shop', { synced: false, behindSince: ago(90), types });
  expect(printProxies([report([one], objects)]).split('\n')).toEqual([
    'bad.shop',
    '  Node       sidecar~10.0.0.1~bad.shop~x',
    '  Build      envoy 1.40.0',
    '  Connected  for 3h, to fairlead-a',
    '  State      REJECTS 7, BEHIND 90s',
    '',
    'TYPE  STATE          TO BE SENT  DETAILS',
    'cds   NO ANSWER 90s  3           long overdue: cold',
    'rds   REJECTS 7      0           rejects 80, 81 and 5 more; "bad weights"',
    '',
    'OBJECT                 GENERATION  SINCE    STATE',
    'VirtualService/shop/a  2           15s ago  not acknowledged for 10s',
    'Sidecar/shop/s         2           15s ago  rejected: RouteConfiguration 80: "bad\\nweights"; generation 1 is in force',
    '',
  ]);
});
