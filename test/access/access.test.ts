import fc from 'fast-check';
import { expect, test } from 'vitest';
import { judge, type Judgement } from '../../src/judge/judge.ts';
import { seed } from '../harness/seed.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { withPeers } from '../peers/with-peers.ts';
import { ADDRESS, type Answer, type Gate, openGate } from './gate.ts';
import { type RandomRequest, type RandomWorld, randomWorld } from './worlds.ts';
import { runs } from '../../src/testing/runs.ts';

/** Requests, in worlds of forty. */
const REQUESTS = runs(400);
const REQUESTS_OF_WORLD = 40;
/** In one Envoy. */
const MOST_WORLDS = 50;
/** Differences that are shown. */
const SHOWN = 3;

interface Compared {
  readonly seed: number;
  readonly actual: string;
  readonly expected: string;
  readonly details: string;
  readonly request: RandomRequest;
  readonly world: Omit<RandomWorld, 'requests'>;
}

withPeers(['envoy'], 'whatever the policies and the requests are', () => {
  test('the judge says what a real Envoy answers, and which rule is why', async () => {
    const compared: Compared[] = [];
    for (let first = 0; first * REQUESTS_OF_WORLD < REQUESTS; first += MOST_WORLDS) {
      const count = Math.min(MOST_WORLDS, Math.ceil(REQUESTS / REQUESTS_OF_WORLD) - first);
      const seeds = Array.from({ length: count }, (_, i) => seed * 100_003 + first + i);
      compared.push(...(await compare(seeds)));
    }
    const outcomes: Record<string, number> = {};
    for (const { expected } of compared) {
      const outcome = expected.replace(/ ns\[.*/, ' by a rule');
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
    console.log(`FAIRLEAD_SEED=${seed}: ${compared.length} requests: ${JSON.stringify(outcomes)}`);
    const different = compared.filter(({ actual, expected }) => expected !== 'unknown' && actual !== expected);
    expect(different.length, JSON.stringify(different.slice(0, SHOWN), undefined, 1)).toBe(0);
  }, 3_600_000);
});

async function compare(seeds: readonly number[]): Promise<readonly Compared[]> {
  const ports = await freePorts(3 * seeds.length);
  const portsOf = seeds.map((_, i) => ports.slice(3 * i, 3 * i + 3));
  const worlds = seeds.map(
    (each, i) => fc.sample(fc.noBias(randomWorld(portsOf[i]!, REQUESTS_OF_WORLD)), { seed: each, numRuns: 1 })[0]!,
  );
  const gate = await openGate(worlds, portsOf);
  const answers = await Promise.all(worlds.map((world, i) => answersOf(gate, i, world, portsOf[i]!)));
  const all = answers.flatMap((some, i) => some.map((one) => ({ ...one, world: worlds[i]!, seed: seeds[i]! })));
  const details = await gate.details(all.flatMap(({ id, answer }) => (answer.answer === 403 ? [id] : [])));
  return all.map(({ id, answer, judgement, request, world: { requests: _, ...world }, seed: ofWorld }) => ({
    seed: ofWorld,
    actual: printAnswer(answer, details.get(id) ?? ''),
    expected: printJudgement(judgement),
    details: details.get(id) ?? '',
    request,
    world,
  }));
}

/** One after the other, as long as others do the same. */
async function answersOf(gate: Gate, i: number, { requests }: RandomWorld, ports: readonly number[]) {
  const found = [];
  for (const [j, request] of requests.entries()) {
    const id = `${i}-${j}`;
    const answer = await gate.ask(i, request, id);
    const judgement = judge(gate.access[i]!, asJudged(request, ports, gate), Math.floor(Date.now() / 1000));
    found.push({ id, request, answer, judgement });
  }
  return found;
}

function asJudged({ port, peer, sourceIp, sni, raw, ...http }: RandomRequest, ports: readonly number[], gate: Gate) {
  return {
    peer: peer === undefined ? undefined : gate.peers[peer]!,
    port: ports[port]!,
    sourceIp,
    destinationIp: ADDRESS,
    sni: peer === undefined ? '' : sni,
    http: port === 1 || (port === 2 && raw) ? undefined : http,
  };
}

function printJudgement({ verdict, events }: Judgement): string {
  const asked = events.some(({ kind }) => kind === 'asks') ? 'asked, ' : '';
  switch (verdict.kind) {
    case 'allowed':
      return `${asked}allowed`;
    case 'unknown':
      return 'unknown';
    case 'denied': {
      const { answer, why } = verdict;
      if (answer !== 403 || (why.kind !== 'rule' && why.kind !== 'provider')) return `${asked}${answer}`;
      const { object, field } = why.by;
      return `${asked}${answer} ns[${object.namespace}]-policy[${object.name}]-rule[${/\d+/.exec(field)?.[0] ?? 0}]`;
    }
  }
}

function printAnswer({ answer, asked }: Answer, details: string): string {
  const rule = /ns\[.*rule\[\d+\]/.exec(details)?.[0];
  return `${asked ? 'asked, ' : ''}${answer}${rule === undefined ? '' : ` ${rule}`}`;
}
