import { afterAll, beforeAll, expect, test } from 'vitest';
import { poll } from '../../peers/process.ts';
import { CHARTS, SHOP, SYSTEM, WAIT, closeGateway, openGateway } from '../bookshop.ts';
import { type Load, startLoad } from '../load/load.ts';
import { http1, http2 } from '../load/requests.ts';
import { type LongSessions, longSessions, shortSessions } from '../load/web-sockets.ts';
import type { RunningNode } from '../node.ts';
import type { Ways } from './mesh.ts';
import { isWhole, pageAt } from './page.ts';
import { peerMode } from './peer-mode.ts';

/** Restarts: a load that has lost nothing by then would not notice a loss at all. */
const MOST_TRIES = 3;

interface Everything {
  readonly load: Load;
  /** Those of them that outlive Pods. */
  readonly sessions: LongSessions;
}

/** Requests of every kind. Those of /slow take three seconds; a Pod drains for five. */
function loadOf(origin: string, ...others: readonly string[]): Everything {
  const sessions = longSessions(origin, 2);
  const load = startLoad([
    http1(origin, ['/', '/', '/slow', '/slow'], isWhole),
    http2(origin, ['/', '/', '/slow', '/slow'], isWhole),
    shortSessions(origin, 2),
    sessions,
    ...others.map((other) => http1(other, ['/'], isWhole)),
  ]);
  return { load, sessions };
}

/** What the storefront asks for is mutual TLS only; itself, it is asked by a gateway that has no certificate. */
const MODES = [peerMode(SHOP, 'strict', 'STRICT'), peerMode(SHOP, 'open', 'PERMISSIVE', { app: 'storefront' })];

/** Pods by namespace and labels. */
type Pods = readonly [namespace: string, selector: string];

const GATEWAY: Pods = [SHOP, 'app=ingressgateway'];
const FAIRLEAD: Pods = [SYSTEM, 'app.kubernetes.io/name=fairlead'];

export function restarts(node: () => RunningNode, ways: () => Ways): void {
  const kubectl = (...args: string[]): Promise<string> => node().kubectl(...args);
  const restart = (namespace: string, ...names: string[]): Promise<string> =>
    kubectl('-n', namespace, 'rollout', 'restart', ...names.map((name) => `deployment/${name}`));

  const policies = ['peerauthentication/strict', 'peerauthentication/open'];
  beforeAll(async () => {
    await node().apply(MODES.join('\n---\n'));
    await kubectl('-n', SHOP, 'wait', '--for=condition=Programmed', ...policies, '--timeout=60s');
    const stock = `http://127.0.0.1:${await node().forward(`stock.${SHOP}.svc.cluster.local`, 80)}`;
    await expect(fetch(stock)).rejects.toThrow('fetch failed');
  }, 90_000);
  afterAll(() => kubectl('-n', SHOP, 'delete', ...policies));

  /** Makes a change under load, which goes on until every Pod from before has ended, and has more answers after that. */
  async function change(load: Load, pods: readonly Pods[], make: (old: readonly string[]) => Promise<unknown>) {
    await load.more(1);
    const names = await Promise.all(
      pods.map(async ([namespace, selector]) => ({
        namespace,
        old: (await kubectl('-n', namespace, 'get', 'pods', '-l', selector, '-o', 'name')).trim().split('\n'),
      })),
    );
    await make(names.flatMap(({ old }) => old));
    for (const { namespace, old } of names)
      await kubectl('-n', namespace, 'wait', '--for=delete', ...old, '--timeout=120s');
    await load.more(1);
  }

  /** What is lost by a change, and how many sessions it has ended in which way. */
  async function lostBy(
    pods: readonly Pods[],
    make: (old: readonly string[], sessions: LongSessions) => Promise<unknown>,
  ): Promise<{ readonly lost: readonly string[]; readonly ends: readonly number[] }> {
    const { load, sessions } = loadOf(ways().gateway, ways().plainGateway);
    try {
      await change(load, pods, (old) => make(old, sessions));
    } finally {
      await load.stop();
    }
    return { lost: await load.stop(), ends: sessions.ends };
  }

  /** Until so many more messages have come and gone in each session that is open now. */
  async function goOn(sessions: LongSessions, messages: number): Promise<void> {
    const until = sessions.echoes().map((count) => count + messages);
    await poll('messages', () =>
      Promise.resolve(sessions.echoes().every((count, index) => count >= until[index]!) || undefined),
    );
  }

  test('loses nothing while its services restart, which send sessions elsewhere', { timeout: 300_000 }, async () => {
    const services: readonly Pods[] = [[SHOP, 'app in (storefront,reviews,stock),version=v1']];
    const { lost, ends } = await lostBy(services, () => restart(SHOP, 'storefront-v1', 'reviews-v1', 'stock-v1'));
    expect(lost).toEqual([]);
    // "Going away": in words, not by a connection that breaks.
    expect(ends).toEqual([1001, 1001]);
  });

  test('loses nothing while Fairlead restarts, and follows it afterwards', { timeout: 300_000 }, async () => {
    const { lost, ends } = await lostBy([FAIRLEAD], () => restart(SYSTEM, 'fairlead'));
    expect([lost, ends]).toEqual([[], []]);
    const moved = [{ op: 'add', path: '/spec/http/0/redirect/uri', value: '/moved-again' }];
    await kubectl('-n', SHOP, 'patch', 'virtualservice/storefront', '--type=json', '-p', JSON.stringify(moved));
    await kubectl('-n', SHOP, 'wait', '--for=condition=Programmed', 'virtualservice/storefront', '--timeout=60s');
    for (const origin of [ways().gateway, ways().plainGateway]) {
      const answer = await fetch(`${origin}/catalogue`, { redirect: 'manual' });
      expect(answer.headers.get('location')).toBe(`${origin}/moved-again`);
    }
  });

  test(
    'loses nothing while its gateway restarts, and sessions go on while it drains',
    { timeout: 300_000 },
    async () => {
      const { lost, ends } = await lostBy([GATEWAY], async ([old = ''], sessions) => {
        await restart(SHOP, 'ingressgateway');
        await poll('the end of the gateway to begin', async () =>
          (await kubectl('-n', SHOP, 'get', old, '-o', 'jsonpath={.metadata.deletionTimestamp}')) === ''
            ? undefined
            : true,
        );
        await goOn(sessions, 20);
        expect(sessions.ends).toEqual([]);
      });
      expect(lost).toEqual([]);
      expect(ends).toHaveLength(2);
    },
  );

  test('loses nothing while both charts are upgraded', { timeout: 300_000 }, async () => {
    const upgrade = (namespace: string, release: string, chart: string, value: string): Promise<string> =>
      node().helm('upgrade', release, chart, '-n', namespace, '--reuse-values', '--set', value, ...WAIT);
    const { lost } = await lostBy([GATEWAY, FAIRLEAD], async () => {
      await Promise.all([
        upgrade(SYSTEM, 'fairlead', CHARTS.fairlead, 'log.level=debug'),
        upgrade(SHOP, 'ingressgateway', CHARTS.gateway, 'podAnnotations.upgraded=yes'),
      ]);
    });
    expect(lost).toEqual([]);
  });

  // What the others find must come from draining, not from a load that cannot lose anything.
  test('loses something while a gateway restarts that does not drain', { timeout: 300_000 }, async () => {
    const name = 'hasty';
    const origin = await openGateway(node(), name, { terminationDrainDuration: '0s' });
    await expect.poll(() => pageAt(origin).catch(() => undefined)).toMatchObject({ service: 'storefront' });
    const { load } = loadOf(origin);
    try {
      await load.more(1);
      expect(load.lost()).toBe(0);
      for (let tries = 0; tries < MOST_TRIES && load.lost() === 0; tries++)
        await change(load, [[name, `app=${name}`]], () => restart(name, name));
    } finally {
      await load.stop();
    }
    expect(await load.stop()).not.toEqual([]);
    await closeGateway(node(), name);
  });
}
