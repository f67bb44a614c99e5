import fc from 'fast-check';
import { WHOLE } from '../../api/place.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { errorOfAnswer } from '../client/api-error.ts';
import type { DesiredCondition } from './conditions.ts';
import type { Json } from '../../api/json.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { CONTROLLER } from './entries.ts';
import { StatusWriter, type StatusWriterOptions } from './status-writer.ts';
import type { DesiredStatus } from './status-change.ts';
import { FaultyApi } from '../testing/faulty-api.ts';
import { InformerLab } from '../testing/informer-lab.ts';
import { runs } from '../../testing/runs.ts';

class WriterLab extends InformerLab {
  readonly api = new FaultyApi(this.cluster, this.clock);
  readonly writer: StatusWriter;

  constructor(options: Partial<StatusWriterOptions> = {}) {
    super();
    const { api, clock, informer, log, outages } = this;
    this.writer = new StatusWriter({
      api,
      latest: (_, namespace, name) => informer.latest(namespace, name),
      types: ['Accepted', 'ResolvedRefs'],
      clock,
      random: () => 0.5,
      log,
      outages,
      ...options,
    });
    this.onTouched = ({ metadata }) => this.writer.observed('VirtualService', metadata.namespace ?? '', metadata.name);
  }

  object(name: string): Json & { metadata: Json } {
    return this.cluster.object(this.path, 'default', name) as Json & { metadata: Json };
  }

  conditions(name: string): Json[] | undefined {
    return (this.object(name)['status'] as { conditions?: Json[] } | undefined)?.conditions;
  }

  desired(name: string, message: string): DesiredStatus {
    const { uid, generation } = this.object(name).metadata;
    const accepted: DesiredCondition = {
      type: 'Accepted',
      status: 'True',
      reason: 'Valid',
      message,
      observedGeneration: generation as number,
    };
    return {
      kind: 'VirtualService',
      namespace: 'default',
      name,
      uid: uid as string,
      generation: generation as number,
      said: [{ place: WHOLE, conditions: [accepted] }],
    };
  }

  set(name: string, message: string): void {
    this.writer.set(`c/${name}`, this.desired(name, message));
  }

  lead(revision = ''): AbortController {
    const term = new AbortController();
    this.writer.lead(term.signal, revision);
    return term;
  }

  messages(...names: string[]): unknown[] {
    return names.map((name) => this.conditions(name)?.find(({ type }) => type === 'Accepted')?.['message']);
  }

  /** The API server fails for so long that the next attempt would be minutes away. */
  async outage(): Promise<void> {
    this.cluster.broken.add(this.path);
    for (const watch of this.cluster.watches()) watch.finish();
    await this.clock.advance(450_000);
    this.cluster.broken.clear();
  }

  /** Names of the objects that were written since the last call. */
  writes(): string[] {
    return this.cluster.requests
      .splice(0)
      .filter(({ method }) => method === 'PATCH')
      .map(({ path }) => path.split('/').at(-2) ?? '');
  }
}

let lab: WriterLab;

async function begin(names: readonly string[], options: Partial<StatusWriterOptions> = {}): Promise<WriterLab> {
  lab = new WriterLab(options);
  lab.install();
  for (const name of names) lab.put(name);
  await lab.start();
  lab.cluster.requests.length = 0;
  return lab;
}

beforeEach(() => begin(['a', 'b', 'c']));
afterEach(() => lab.stop());

describe('a leader', () => {
  test('writes what differs, once, and nothing else', async () => {
    lab.lead();
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    expect(lab.conditions('a')).toEqual([
      {
        type: 'Accepted',
        status: 'True',
        reason: 'Valid',
        message: 'fine',
        observedGeneration: 1,
        lastTransitionTime: '2030-01-01T00:00:00Z',
      },
    ]);
    lab.set('a', 'fine');
    await lab.clock.advance(60_000);
    expect(lab.writes()).toEqual(['a']);
    expect(lab.writer.stats()).toEqual({ writes: 1, conflicts: 0, failures: 0, pending: 0 });
  });

  test('writes what is said about parents, beside the entries of other controllers, and takes back what is stale', async () => {
    await lab.stop();
    await begin(['a'], { latest: (_, __, name) => lab.object(name) as unknown as KubernetesObject });
    const other = { parentRef: { name: 'x' }, controllerName: 'example.com/other', conditions: [{ type: 'Accepted' }] };
    lab.put('a', 'a', { status: { parents: [other] } });
    await lab.clock.settle();
    lab.lead();
    const say = async (...names: string[]): Promise<unknown> => {
      const { said, ...desired } = lab.desired('a', 'fine');
      const { conditions } = said[0]!;
      const places = names.map((name) => ({ place: { in: 'parents', ref: { name } } as const, conditions }));
      lab.writer.set('c/a', { ...desired, said: places });
      await lab.clock.advance(60_000);
      const { parents } = lab.object('a')['status'] as { parents: { parentRef: { name: string } }[] };
      expect(parents[0]).toEqual(other);
      return parents.slice(1).map(({ parentRef }) => parentRef.name);
    };
    expect(await say('p', 'q')).toEqual(['p', 'q']);
    expect(lab.conditions('a')).toBeUndefined();
    expect(await say('q')).toEqual(['q']);
    expect(lab.writes()).toEqual(['a', 'a']);
    expect(await say('q')).toEqual(['q']);
    expect(lab.writes()).toEqual([]);
    expect(await say()).toEqual([]);
  });

  test('writes the generation that the conditions are about, in the same write', async () => {
    lab.lead();
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    expect(lab.object('a')['status']).toMatchObject({ observedGeneration: 1 });
    lab.put('a', 'b');
    expect(lab.object('a')).toMatchObject({ metadata: { generation: 2 }, status: { observedGeneration: 1 } });
    lab.set('a', 'fine');
    await lab.clock.advance(60_000);
    expect(lab.object('a')['status']).toMatchObject({ observedGeneration: 2 });
    expect(lab.writes()).toEqual(['a', 'a']);
  });

  test.each<[unknown, unknown, string[]]>([
    ['1', '1', []],
    ['0', 1, ['a']],
    ['anything', 1, ['a']],
    [undefined, 1, ['a']],
    [{}, 1, ['a']],
  ])('beside a generation of %j, which Istio writes as text, writes: %j', async (there, expected, writes) => {
    const list = lab
      .desired('a', 'fine')
      .said[0]!.conditions.map((each) => ({ ...each, lastTransitionTime: '2029-01-01T00:00:00Z' }));
    lab.put('a', 'a', { status: { conditions: list, ...(there !== undefined && { observedGeneration: there }) } });
    lab.lead();
    lab.set('a', 'fine');
    await lab.clock.advance(60_000);
    expect(lab.object('a')['status']).toMatchObject({ observedGeneration: expected });
    expect(lab.writes()).toEqual(writes);
  });

  test('writes only the newest of several changes', async () => {
    lab.lead();
    for (let i = 0; i < 10; i++) lab.set('a', `${i}`);
    await lab.clock.advance(1_000);
    expect(lab.messages('a')).toEqual(['9']);
    expect(lab.writes()).toEqual(['a']);
  });

  test('writes again when it changes while it is being written', async () => {
    lab.lead();
    lab.api.fault = { late: 500 };
    lab.set('a', 'one');
    await lab.clock.advance(100);
    lab.set('a', 'two');
    await lab.clock.advance(5_000);
    expect(lab.messages('a')).toEqual(['two']);
    expect(lab.writes()).toEqual(['a', 'a']);
    expect(lab.writer.stats().conflicts).toBe(0);
  });

  test('keeps conditions and fields of others', async () => {
    const others = { type: 'Reconciled', status: 'True' };
    lab.put('a', 'a', { status: { conditions: [others], validationMessages: [{ code: 'x' }] } });
    await lab.clock.settle();
    lab.lead();
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    expect(lab.object('a')['status']).toMatchObject({
      conditions: [others, { type: 'Accepted' }],
      validationMessages: [{ code: 'x' }],
    });
  });

  test('leaves conditions of its types to who else writes them, if it knows its own by how they begin', async () => {
    const condition = (message: string) => ({ type: 'Accepted', status: 'False', reason: 'Theirs', message });
    await lab.stop();
    await begin(['a', 'b'], { types: [] });
    lab.put('a', 'a', { status: { conditions: [condition('of another program')] } });
    lab.put('b', 'b', { status: { conditions: [condition('Ours: old')] } });
    await lab.clock.settle();
    lab.lead();
    for (const name of ['a', 'b']) {
      const desired = lab.desired(name, 'Ours: new');
      const [accepted] = desired.said[0]!.conditions;
      const conditions = [accepted!, { ...accepted!, type: 'ResolvedRefs' }];
      lab.writer.set(name, { ...desired, signature: 'Ours: ', said: [{ place: WHOLE, conditions }] });
    }
    await lab.clock.advance(1_000);
    expect(lab.messages('a', 'b')).toEqual(['of another program', 'Ours: new']);
    expect(lab.conditions('a')).toHaveLength(2);
    lab.writes();
    await lab.clock.advance(60_000);
    expect(lab.writes()).toEqual([]);
  });

  test('writes over who removed its conditions, and ever more slowly over who keeps doing so', async () => {
    lab.lead();
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    lab.onTouched = ((before) => (object) => {
      before(object);
      if (lab.messages('a')[0] !== undefined) lab.put('a', 'a', { status: {} });
    })(lab.onTouched);
    lab.put('a', 'a', { status: {} });
    await lab.clock.advance(600_000);
    expect(lab.writes().length).toBeGreaterThan(3);
    expect(lab.writer.stats().writes).toBeLessThan(15);
  });
});

describe('a server that does not keep all that is written', () => {
  beforeEach(() => {
    const write = lab.api.patch.bind(lab.api);
    lab.api.patch = (path, body, call) => {
      const { status, ...rest } = structuredClone(body) as Json & { status: { conditions: Json[] } };
      delete (status as { observedGeneration?: unknown }).observedGeneration;
      for (const condition of status.conditions)
        delete (condition as { observedGeneration?: unknown }).observedGeneration;
      return write(path, { ...rest, status }, call);
    };
  });

  test('is not written to again and again', async () => {
    lab.lead();
    lab.set('a', 'fine');
    await lab.clock.advance(600_000);
    lab.put('a', 'a', { status: { conditions: lab.conditions('a'), other: true } });
    await lab.clock.advance(600_000);
    expect(lab.writes()).toEqual(['a']);
  });

  test('is written to when the conditions change, and when somebody else changed them', async () => {
    lab.lead();
    lab.set('a', 'fine');
    await lab.clock.advance(60_000);
    lab.set('a', 'better');
    await lab.clock.advance(60_000);
    expect(lab.messages('a')).toEqual(['better']);
    lab.put('a', 'a', { status: { conditions: [{ type: 'Other', status: 'True' }] } });
    await lab.clock.advance(60_000);
    expect(lab.conditions('a')?.map(({ type }) => type)).toEqual(['Other', 'Accepted']);
    expect(lab.writes()).toEqual(['a', 'a', 'a']);
  });
});

describe('a conflict', () => {
  test('is solved by reading the object again', async () => {
    lab.lead();
    for (const watch of lab.cluster.watches()) watch.mute();
    lab.put('a', 'a', { status: { conditions: [{ type: 'Other', status: 'True' }] } });
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    expect(lab.conditions('a')?.map(({ type }) => type)).toEqual(['Other', 'Accepted']);
    expect(lab.writer.stats()).toMatchObject({ writes: 1, conflicts: 1 });
  });

  test('again and again has the writer back off', async () => {
    lab.lead();
    const patch = vi.spyOn(lab.api, 'patch').mockRejectedValue(errorOfAnswer(409, ''));
    lab.set('a', 'fine');
    const get = lab.api.get.bind(lab.api);
    let changes = 0;
    vi.spyOn(lab.api, 'get').mockImplementation((...args) => {
      lab.put('a', 'a', { status: { other: ++changes } });
      return get(...args);
    });
    await lab.clock.advance(60_000);
    expect(patch.mock.calls.length).toBeLessThan(20);
  });

  test('with a newer generation is not: its own conditions will come', async () => {
    lab.lead();
    for (const watch of lab.cluster.watches()) watch.mute();
    const old = lab.desired('a', 'fine');
    lab.put('a', 'changed');
    lab.writer.set('c/a', old);
    await lab.clock.advance(1_000);
    expect(lab.conditions('a')).toBeUndefined();
    for (const watch of lab.cluster.watches()) watch.finish();
    await lab.clock.advance(1_000);
    lab.set('a', 'fine again');
    await lab.clock.advance(1_000);
    expect(lab.conditions('a')).toMatchObject([{ message: 'fine again', observedGeneration: 2 }]);
  });
});

describe('an object', () => {
  test('that is gone is forgotten', async () => {
    lab.lead();
    for (const watch of lab.cluster.watches()) watch.mute();
    const gone = lab.desired('a', 'fine');
    lab.delete('a');
    lab.writer.set('c/a', gone);
    await lab.clock.advance(600_000);
    // The watch may be right: it says that the object exists.
    expect(lab.writes().length).toBeLessThan(12);
    for (const watch of lab.cluster.watches()) watch.finish();
    await lab.clock.advance(600_000);
    lab.writes();
    await lab.clock.advance(3_600_000);
    expect(lab.writes()).toEqual([]);
  });

  test('that is said not to exist, although it does, is asked about again', async () => {
    lab.lead();
    vi.spyOn(lab.api, 'patch').mockRejectedValueOnce(errorOfAnswer(404, ''));
    lab.set('a', 'fine');
    await lab.clock.advance(600_000);
    expect(lab.messages('a')).toEqual(['fine']);
  });

  test('whose status is nested thousands of levels deep does no harm', async () => {
    const nested = (): unknown => JSON.parse('['.repeat(4_000) + ']'.repeat(4_000));
    const object = (resourceVersion: string, conditions: readonly Json[]) => ({
      metadata: { name: 'x', namespace: 'n', uid: 'u', generation: 1, resourceVersion },
      status: {
        conditions: [
          { type: 'Other', nested: nested() },
          ...conditions.filter(({ type }) => type === 'Accepted').map(({ observedGeneration: _, ...kept }) => kept),
        ],
      },
    });
    let latest = object('1', []);
    const patch = vi.spyOn(lab.api, 'patch').mockImplementation((_, body) => {
      const { conditions } = (body as { readonly status: { readonly conditions: readonly Json[] } }).status;
      latest = object('2', conditions);
      return Promise.resolve(object('2', conditions));
    });
    const { api, clock, log } = lab;
    const writer = new StatusWriter({
      api,
      latest: () => latest as unknown as KubernetesObject,
      types: ['Accepted'],
      clock,
      random: () => 0.5,
      log,
    });
    writer.lead(new AbortController().signal, '');
    writer.set('k', { ...lab.desired('a', 'fine'), namespace: 'n', name: 'x', uid: 'u' });
    await clock.advance(1_000);
    expect(patch.mock.calls.length).toBeLessThan(5);
    expect(() => writer.observed('VirtualService', 'n', 'x')).not.toThrow();
  });

  test('whose status names a parent that is no text does not keep others from theirs', async () => {
    const parentRef = { name: { toString: 1 } };
    const odd = { parents: [{ parentRef, controllerName: CONTROLLER }] };
    lab.put('b', 'b', { status: odd });
    await lab.clock.advance(1_000);
    lab.lead();
    for (const name of ['a', 'b', 'c']) lab.set(name, 'fine');
    await lab.clock.advance(1_000);
    expect(lab.messages('a', 'b', 'c')).toEqual(['fine', 'fine', 'fine']);
    expect(lab.object('b')['status']).toMatchObject({ parents: [] });
  });

  test('is written to although an answer claimed a version that nobody reaches', async () => {
    lab.lead();
    const patch = lab.api.patch.bind(lab.api);
    const claim = (answer: unknown): unknown => {
      const { metadata } = answer as { readonly metadata: Json };
      return { ...(answer as Json), metadata: { ...metadata, resourceVersion: '9'.repeat(20) } };
    };
    vi.spyOn(lab.api, 'patch').mockImplementationOnce(async (...args) => claim(await patch(...args)));
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    lab.put('a', 'changed');
    await lab.clock.settle();
    lab.set('a', 'fine again');
    await lab.clock.advance(60_000);
    expect(lab.messages('a')).toEqual(['fine again']);
  });

  test('that was created anew is not given the conditions of the old one', async () => {
    const old = lab.desired('a', 'fine');
    lab.cluster.apply(lab.path, { metadata: { namespace: 'default', name: 'a' }, spec: {} }, { anew: true });
    await lab.clock.settle();
    lab.lead();
    lab.writer.set('c/a', old);
    await lab.clock.advance(60_000);
    expect(lab.writes()).toEqual([]);
  });

  test('that was forgotten is not written any more', async () => {
    lab.lead();
    lab.set('a', 'fine');
    lab.writer.forget('c/a');
    await lab.clock.advance(1_000);
    expect(lab.writes()).toEqual([]);
  });
});

describe('only the leader writes', () => {
  test('and writes everything that differs when it becomes one', async () => {
    lab.set('a', 'fine');
    lab.set('b', 'fine');
    await lab.clock.advance(60_000);
    expect(lab.writes()).toEqual([]);
    lab.lead();
    await lab.clock.advance(1_000);
    expect(lab.writes().sort()).toEqual(['a', 'b']);
  });

  test('of a revision writes objects of that revision, also when their label changes', async () => {
    const label = (name: string, labels: Record<string, string>): Json =>
      lab.cluster.apply(lab.path, { metadata: { name, namespace: 'default', labels }, spec: { hosts: [name] } });
    label('b', { 'istio.io/rev': 'canary' });
    for (const name of ['a', 'b', 'c']) lab.set(name, 'fine');
    const unlabelled = lab.lead('');
    await lab.clock.advance(1_000);
    expect(lab.writes().sort()).toEqual(['a', 'c']);
    const canary = lab.lead('canary');
    await lab.clock.advance(1_000);
    expect(lab.writes()).toEqual(['b']);
    unlabelled.abort();
    for (const name of ['a', 'b', 'c']) lab.set(name, 'changed');
    await lab.clock.advance(1_000);
    expect(lab.writes()).toEqual(['b']);
    label('a', { 'istio.io/rev': 'canary' });
    await lab.clock.advance(1_000);
    expect(lab.writes()).toEqual(['a']);
    canary.abort();
    lab.set('b', 'changed again');
    await lab.clock.advance(600_000);
    expect(lab.writes()).toEqual([]);
  });

  test('and stops at once when it is none any more', async () => {
    const term = lab.lead();
    lab.api.fault = 'hanging';
    lab.set('a', 'fine');
    lab.set('b', 'fine');
    await lab.clock.advance(100);
    term.abort();
    await lab.writer.idle();
    lab.api.fault = 'none';
    await lab.clock.advance(600_000);
    expect(lab.writes()).toEqual([]);
    lab.lead();
    await lab.clock.advance(1_000);
    expect(lab.messages('a', 'b')).toEqual(['fine', 'fine']);
  });
});

describe('after an outage', () => {
  test('what could not be written is written as soon as the server is reached', async () => {
    lab.lead();
    lab.set('a', 'fine');
    lab.set('b', 'fine');
    await lab.outage();
    await lab.clock.advance(11_000);
    expect(lab.messages('a', 'b')).toEqual(['fine', 'fine']);
  });

  test('what the server does not take waits for its turn', async () => {
    lab.lead();
    const patch = vi.spyOn(lab.api, 'patch').mockRejectedValue(errorOfAnswer(422, ''));
    lab.set('a', 'fine');
    await lab.outage();
    const { length } = patch.mock.calls;
    await lab.clock.advance(11_000);
    expect(patch.mock.calls).toHaveLength(length);
  });
});

describe('a failed write no longer counts as an outage', () => {
  const saidOnce = ['API server: unreachable, retrying until it works', 'API server: no longer unreachable'];

  test('when another replica leads', async () => {
    const term = lab.lead();
    lab.api.fault = 'refused';
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    term.abort();
    expect(lab.log.messages()).toEqual(saidOnce);
  });

  test('when another replica leads for its revision', async () => {
    lab.lead('r2');
    const term = lab.lead();
    lab.api.fault = 'refused';
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    term.abort();
    await lab.clock.advance(600_000);
    expect(lab.log.messages()).toEqual(saidOnce);
  });

  test('when the object says by then what it should', async () => {
    lab.lead();
    lab.api.fault = 'refused';
    lab.set('a', 'fine');
    await lab.clock.advance(1_000);
    const [accepted] = lab.desired('a', 'fine').said[0]!.conditions;
    lab.put('a', 'a', { status: { conditions: [{ ...accepted, lastTransitionTime: '2030-01-01T00:00:00Z' }] } });
    lab.api.fault = 'none';
    await lab.clock.advance(600_000);
    expect(lab.log.messages()).toEqual(saidOnce);
  });
});

describe('many objects', () => {
  const names = Array.from({ length: 200 }, (_, i) => `v${i}`);

  test('are written at a bounded rate, newest changes first, the oldest not forgotten', async () => {
    await begin(names, { rate: 10, burst: 20, concurrency: 1 });
    lab.lead();
    for (const name of names) lab.set(name, 'fine');
    await lab.clock.settle();
    await lab.clock.advance(10);
    const first = lab.writes();
    expect(first).toHaveLength(20);
    expect(first.slice(0, 6)).toEqual(['v199', 'v198', 'v197', 'v196', 'v0', 'v195']);
    await lab.clock.advance(10_000);
    expect(lab.writes().length).toBe(100);
    lab.set('v150', 'changed');
    await lab.clock.advance(300);
    expect(lab.writes()).toContain('v150');
    await lab.clock.advance(20_000);
    expect(new Set(lab.messages(...names))).toEqual(new Set(['fine', 'changed']));
  });

  test('that cannot be written are tried again ever more slowly, said once', async () => {
    await begin(names.slice(0, 5));
    lab.lead();
    lab.api.fault = 'refused';
    for (const name of names.slice(0, 5)) lab.set(name, 'fine');
    await lab.clock.advance(600_000);
    expect(lab.writer.stats().failures).toBeLessThan(5 * 12);
    lab.api.fault = 'none';
    await lab.clock.advance(300_000);
    expect(new Set(lab.messages(...names.slice(0, 5)))).toEqual(new Set(['fine']));
    expect(lab.log.messages().filter((message) => message.includes('retrying'))).toHaveLength(1);
  });
});

test('whatever happens, in the end every object has its conditions and those of others, and no write changed nothing', async () => {
  const name = fc.constantFrom('a', 'b', 'c');
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('set', 'edit', 'other', 'wipe', 'recreate'), name }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('lead', 'lose', 'mute', 'drop') }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('fault'),
        fault: fc.constantFrom('none', 'refused', 'hanging', 'lost', { late: 300 }),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(0, 50, 2_000) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 50, size: 'max' }), async (steps) => {
      await lab.stop();
      await begin(['a', 'b', 'c']);
      let term: AbortController | undefined;
      let count = 0;
      const others: Record<string, string> = {};
      lab.cluster.onPatch = (before, after) => {
        expect((after['status'] as Json)['conditions']).not.toEqual(
          (before['status'] as Json | undefined)?.['conditions'],
        );
      };
      for (const s of steps as (Json & { do: string; name: string })[]) {
        switch (s.do) {
          case 'set':
            lab.set(s.name, `${++count}`);
            break;
          case 'edit':
            lab.put(s.name, `${++count}`);
            break;
          case 'other': {
            const rest = (lab.conditions(s.name) ?? []).filter(({ type }) => type !== 'Other');
            const mine = { type: 'Other', message: (others[s.name] = `${++count}`) };
            lab.put(s.name, 'x', { status: { conditions: [...rest, mine] } });
            break;
          }
          case 'wipe':
            lab.put(s.name, 'x', { status: {} });
            delete others[s.name];
            break;
          case 'recreate':
            lab.cluster.apply(lab.path, { metadata: { namespace: 'default', name: s.name }, spec: {} }, { anew: true });
            delete others[s.name];
            break;
          case 'lead':
            if (term === undefined || term.signal.aborted) term = lab.lead();
            break;
          case 'lose':
            term?.abort();
            break;
          case 'mute':
            for (const watch of lab.cluster.watches()) watch.mute();
            break;
          case 'drop':
            for (const watch of lab.cluster.watches()) watch.finish();
            break;
          case 'fault':
            lab.api.fault = s['fault'] as never;
            break;
          case 'wait':
            await lab.clock.advance(s['ms'] as number);
        }
      }
      lab.api.fault = 'none';
      for (const watch of lab.cluster.watches()) watch.finish();
      await lab.clock.advance(30_000);
      // A hanging request ends with the term, as the client's time limit would end it.
      term?.abort();
      lab.lead();
      for (const n of ['a', 'b', 'c']) lab.set(n, 'last');
      await lab.clock.advance(60_000);
      for (const n of ['a', 'b', 'c']) {
        const types = Object.fromEntries((lab.conditions(n) ?? []).map(({ type, message }) => [type, message]));
        expect(types).toEqual({ Accepted: 'last', ...(others[n] === undefined ? {} : { Other: others[n] }) });
      }
    }),
    { numRuns: runs(200) },
  );
});
