import { beforeAll, describe, expect, test } from 'vitest';
import {
  type Plugged,
  type Progress,
  type Rotation,
  MOST_RETIRING,
  RECONNECTED,
  advance,
  allow,
  begin,
  bundleId,
  bundleOf,
  withReport,
} from './rotation.ts';
import { reportOf, stepsBetween } from './rotation-report.ts';
import { renewed, selfSigned } from './self-signed.ts';
import { readMaterial } from './signing-material.ts';

const start = new Date('2030-01-01T00:00:00Z');
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 24 * 3_600_000];
const after = (ms: number): Date => new Date(start.getTime() + ms);

async function plug(name: string, from = start): Promise<Plugged> {
  return pluggedOf(await selfSigned(name, from), from);
}

function pluggedOf(entries: Readonly<Record<string, string>>, at = start): Plugged {
  const read = readMaterial(entries, at);
  if ('problem' in read) throw new Error(read.problem);
  return { entries, material: read.material };
}

let [a, b, c]: Plugged[] = [];
beforeAll(async () => {
  [a, b, c] = await Promise.all([plug('a'), plug('b'), plug('c')]);
});

/** Who signs, and every root: `a`, `b by …`, `c until …`; moments in hours since the start. */
function shown(rotation: Rotation): { signing: string; roots: string[] } {
  const names = new Map([a, b, c].map((each) => [each!.material.root, each!.material]));
  const hours = (moment: string): string => String((Date.parse(moment) - start.getTime()) / HOUR);
  const nameOf = (pem: string): string => 'abc'[[...names.keys()].indexOf(pem)] ?? '?';
  return {
    signing: nameOf(rotation.signing['root-cert.pem']!),
    roots: rotation.roots.map(({ certificate, by, until }) =>
      [nameOf(certificate), ...(by ? ['by', hours(by)] : []), ...(until ? ['until', hours(until)] : [])].join(' '),
    ),
  };
}

/** What replicas report: how many proxies and namespaces they wait for. */
function report(rotation: Rotation, at: Date, ...replicas: Partial<Progress>[]): Rotation {
  const bundle = bundleId(bundleOf(rotation));
  const reports = replicas.map((each, i) => {
    const noneSince = new Date(at.getTime() - RECONNECTED).toISOString();
    const none = (each.proxies ?? 0) === 0 && { noneSince };
    return [`${i}`, { at: at.toISOString(), bundle, proxies: 0, ...none, ...each }] as const;
  });
  return { ...rotation, replicas: Object.fromEntries(reports) };
}

const leader = { namespaces: 0 };
const distributing = (): Rotation => advance(begin(a!, start), b, start);

test('a proxy that is away for a moment is waited for', () => {
  const bundle = bundleId(bundleOf(distributing()));
  const signers = (...looks: readonly (readonly [minute: number, proxies: number])[]): string => {
    let rotation = distributing();
    for (const [minute, proxies] of looks) {
      const at = after(minute * MINUTE);
      rotation = advance(withReport(rotation, 'one', { bundle, proxies, namespaces: 0 }, at), b, at);
    }
    return shown(rotation).signing;
  };
  expect(signers([6, 1], [7, 0], [8, 0])).toBe('a');
  expect(signers([6, 1], [7, 0], [8, 1], [9, 0], [10, 0])).toBe('a');
  expect(signers([6, 1], [7, 0], [8, 0], [9, 0])).toBe('b');
});

test('what is published besides stays trusted until all that it may have signed has expired', () => {
  const first = begin(a!, start, [a!.material.root, b!.material.root]);
  expect(shown(first)).toEqual({ signing: 'a', roots: ['a', 'b by 25 until 25'] });
  expect(shown(advance(first, a, after(24 * HOUR))).roots).toEqual(['a', 'b by 25 until 25']);
  expect(shown(advance(first, a, after(25 * HOUR))).roots).toEqual(['a']);
});

test('a published root that is about to sign waits for all proxies, as any other', () => {
  const first = advance(begin(a!, start, [b!.material.root]), b, start);
  expect(shown(first)).toEqual({ signing: 'a', roots: ['a', 'b by 25'] });
  expect(shown(advance(first, b, after(25 * HOUR)))).toEqual({ signing: 'b', roots: ['b', 'a until 50'] });
});

test('whether we made what signs is known from when it does', () => {
  const made = begin({ ...a!, own: true }, start);
  expect(made.own).toBe(true);
  const next = advance(made, { ...b!, own: false }, start);
  expect(next.own).toBe(true);
  expect(advance(next, { ...b!, own: false }, after(25 * HOUR))).toMatchObject({ own: false, signing: b!.entries });
  expect(advance(begin(a!, start), { ...a!, own: true }, start).own).toBe(true);
});

test('the first authority signs at once', () => {
  expect(shown(begin(a!, start))).toEqual({ signing: 'a', roots: ['a'] });
  const first = begin(a!, start);
  expect(advance(first, a, after(DAY))).toBe(first);
});

test('another root is trusted first, and signs when all replicas have nothing to wait for', () => {
  const added = distributing();
  expect(shown(added)).toEqual({ signing: 'a', roots: ['a', 'b by 25'] });
  const signer = (at: number, ...replicas: Partial<Progress>[]): string =>
    shown(advance(report(added, after(at), ...replicas), b, after(at))).signing;
  const late = 6 * MINUTE;
  expect(signer(late)).toBe('a');
  expect(signer(late, leader, { proxies: 1 })).toBe('a');
  expect(signer(late, { namespaces: 1 }, {})).toBe('a');
  expect(signer(late, leader, { bundle: 'another' })).toBe('a');
  // Nobody writes the ConfigMaps.
  expect(signer(late, {}, {})).toBe('a');
  // Kubelets have not brought them yet.
  expect(signer(4 * MINUTE, leader)).toBe('a');
  expect(signer(late, leader, {})).toBe('b');
  // That replica is gone.
  expect(signer(late, leader, { proxies: 1, at: after(-5 * MINUTE).toISOString() })).toBe('b');
  // All certificates are newer than the bundle.
  expect(signer(25 * HOUR, { proxies: 1, namespaces: 1 })).toBe('b');
  expect(signer(25 * HOUR - 1, { proxies: 1, namespaces: 1 })).toBe('a');
});

test('the old root stays until what it has signed has expired', () => {
  const switched = advance(report(distributing(), after(HOUR), leader), b, after(HOUR));
  expect(shown(switched)).toEqual({ signing: 'b', roots: ['b', 'a until 26'] });
  expect(advance(switched, b, after(26 * HOUR - 1))).toBe(switched);
  expect(shown(advance(switched, b, after(26 * HOUR)))).toEqual({ signing: 'b', roots: ['b'] });
});

test('certificates that live longer than a day prolong both waits', () => {
  const first = begin(a!, start);
  expect(allow(first, after(DAY), start)).toBe(first);
  const long = allow(first, after(30 * DAY), start);
  expect(allow(long, after(30 * DAY + HOUR), after(HOUR))).toBe(long);
  const added = advance(long, b, start);
  expect(shown(added).roots).toEqual(['a', `b by ${31 * 24 + 1}`]);
  const switched = advance(report(added, after(HOUR), leader), b, after(HOUR));
  expect(shown(switched).roots).toEqual(['b', `a until ${31 * 24 + 1}`]);
  expect(shown(advance(switched, c, after(40 * DAY))).roots).toEqual(['b', `c by ${41 * 24 + 1}`]);
});

describe('whoever changes their mind', () => {
  test('before the new root signs, has the old state again', () => {
    expect(shown(advance(distributing(), a, after(HOUR)))).toEqual({ signing: 'a', roots: ['a'] });
    expect(shown(advance(distributing(), c, after(HOUR)))).toEqual({ signing: 'a', roots: ['a', 'c by 26'] });
  });

  test('after that, goes back at once', () => {
    const switched = advance(report(distributing(), after(HOUR), leader), b, after(HOUR));
    expect(shown(advance(switched, a, after(2 * HOUR)))).toEqual({ signing: 'a', roots: ['a', 'b until 27'] });
  });
});

test('what cannot be read changes nothing that is under way', () => {
  const added = distributing();
  expect(advance(added, undefined, after(HOUR))).toBe(added);
  const switched = advance(report(added, after(HOUR), leader), b, after(HOUR));
  expect(shown(advance(switched, undefined, after(26 * HOUR)))).toEqual({ signing: 'b', roots: ['b'] });
});

test('a root that is renewed with its key waits for nobody', async () => {
  const again = pluggedOf(await renewed(a!.material, after(DAY)), after(DAY));
  const next = advance(begin(a!, start), again, after(DAY));
  expect(next.signing).toEqual(again.entries);
  expect(shown(next).roots).toEqual(['?', 'a until 49']);
});

test('a CA that has both roots in its bundle switches between them when all have them', () => {
  const both = (plugged: Plugged): Plugged => {
    const entries = { ...plugged.entries, 'root-cert.pem': a!.material.root + b!.material.root };
    return pluggedOf(entries);
  };
  const added = advance(begin(a!, start), both(a!), start);
  expect(added.signing).toEqual(both(a!).entries);
  expect(shown(added).roots).toEqual(['a', 'b by 25']);
  expect(advance(added, both(b!), after(HOUR)).signing).toEqual(both(a!).entries);
  const switched = advance(report(added, after(HOUR), leader), both(b!), after(HOUR));
  expect(switched.signing).toEqual(both(b!).entries);
  expect(shown(switched).roots).toEqual(['a', 'b']);
});

test('when what signs has expired, another one signs at once', async () => {
  const late = after(11 * 365 * DAY);
  const next = await plug('next', late);
  const switched = advance(begin(a!, start), next, late);
  expect(switched.signing).toEqual(next.entries);
  expect(reportOf(switched, late).step).toBe('Retiring');
});

test('only so many old roots are kept at a time', async () => {
  let rotation = begin(a!, start);
  for (let i = 0; i < MOST_RETIRING; i++) {
    const next = await plug(`${i}`);
    const added = advance(rotation, next, after(i * MINUTE));
    rotation = advance(report(added, after((i + 6) * MINUTE), leader), next, after((i + 6) * MINUTE));
    expect(rotation.signing).toEqual(next.entries);
  }
  const now = after(20 * MINUTE);
  const held = advance(report(advance(rotation, b, now), after(HOUR), leader), b, after(HOUR));
  expect(held.signing).toEqual(rotation.signing);
  expect(shown(advance(held, b, after(26 * HOUR))).signing).toBe('?');
  expect(shown(advance(advance(held, b, after(26 * HOUR)), b, after(26 * HOUR))).signing).toBe('b');
});

test('each step is told, with what the next one waits for', () => {
  const first = begin(a!, start);
  const added = distributing();
  const waiting = report(added, after(HOUR), { proxies: 2, namespaces: 3 });
  const switched = advance(report(added, after(HOUR), leader), b, after(HOUR));
  const told = (rotation: Rotation, at = after(HOUR)) => {
    const { step, since, waitingFor, roots } = reportOf(rotation, at);
    return [step, since, waitingFor, roots.map(({ subject, role }) => `${subject} ${role}`)];
  };
  const [began, later] = [start.toISOString(), after(HOUR).toISOString()];
  expect(told(first)).toEqual(['Stable', began, undefined, ['"O=a" signing']]);
  const roles = ['"O=a" signing', '"O=b" next'];
  const by = after(25 * HOUR).toISOString();
  expect(told(waiting)).toEqual([
    'Distributing',
    began,
    `2 proxies to acknowledge the roots and 3 namespaces to get the ConfigMap, at most until ${by}`,
    roles,
  ]);
  expect(told(added, start)[2]).toBe(`mounted ConfigMaps to follow, until ${after(5 * MINUTE).toISOString()}`);
  expect(told(switched)).toEqual([
    'Retiring',
    later,
    `certificates signed by a retiring root to expire, at ${after(26 * HOUR).toISOString()}`,
    ['"O=b" signing', '"O=a" retiring'],
  ]);
  const steps = (from: Rotation, to: Rotation) =>
    stepsBetween(from, to).map(({ message, root }) => `${root} ${message}`);
  expect(steps(first, added)).toEqual(['"O=b" Root certificate added: it will sign once all proxies trust it']);
  expect(steps(added, switched)).toEqual([
    '"O=b" Root certificate is trusted by all proxies',
    '"O=a" Root certificate no longer signs',
  ]);
  expect(steps(switched, advance(switched, b, after(26 * HOUR)))).toEqual([
    '"O=a" Root certificate dropped: it is no longer trusted',
  ]);
});
