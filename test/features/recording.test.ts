import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { recordedWrite } from '../../src/debug/recording.ts';
import type { Line } from '../../src/debug/recording.ts';
import { recordServer } from '../../src/commands/record.ts';
import { replayFile } from '../../src/commands/replay.ts';
import { seed } from '../harness/seed.ts';
import { pod, serviceEntry, sidecar } from './objects.ts';
import { type Program, get } from './program.ts';
import { REVIEWS, ratings, reviews, rule, split, splitRoutes } from './shop.ts';
import { Directory } from './sources.ts';

const STEPS = 25;

const pool: readonly ((variant: number) => KubernetesObject)[] = [
  (v) => split(10 * v, 100 - 10 * v),
  (v) => pod('reviews-1', '10.1.0.1', { app: 'reviews', version: `v${v % 3}` }),
  () => rule,
  (v) =>
    serviceEntry('api', {
      hosts: ['api.example.com'],
      ports: [{ number: 80 + v, name: 'http', protocol: 'HTTP' }],
      resolution: 'STATIC',
      endpoints: [{ address: `10.9.0.${v + 1}` }],
    }),
  (v) => sidecar('default', { egress: [{ hosts: v % 2 === 0 ? ['./*'] : ['./ratings.shop.svc.cluster.local'] }] }),
];

const steps = fc.sample(
  fc.record({
    which: fc.integer({ min: 0, max: pool.length - 1 }),
    variant: fc.integer({ min: 0, max: 9 }),
    isThere: fc.boolean(),
  }),
  { seed, numRuns: STEPS },
);

/** A recording of a program in which something happens. */
async function record(happens: (program: Program, directory: Directory) => Promise<void>): Promise<readonly Line[]> {
  const directory = await Directory.create();
  await directory.apply(...reviews, ...ratings, rule);
  const program = await directory.start();
  await program.connect(true);
  const file = join(await temporaryDirectory(), 'recording');
  const { commits: before } = program.serving.engine.committer.stats;
  const recording = recordServer(
    { file, server: `127.0.0.1:${program.serving.ports.health}`, seconds: 3_600 },
    new AbortController().signal,
  );
  await program.committed(() => expect(program.serving.engine.committer.stats.commits).toBeGreaterThan(before));
  await happens(program, directory);
  program.clock.skip(3_600_000);
  const { bytes } = await recording;
  const text = await readFile(file, 'utf8');
  expect(text.length).toBe(bytes);
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));
}

async function replay(lines: readonly Line[]) {
  const file = join(await temporaryDirectory(), 'recording');
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join('\n'));
  return replayFile(file);
}

test(`a recorded history makes the same bytes again, and other bytes are found (FAIRLEAD_SEED=${seed})`, async () => {
  const lines = await record(async (program, directory) => {
    const present = new Set<string>();
    await program.connect(false, { id: 'sidecar~10.0.0.8~late.shop~shop.svc.cluster.local' });
    for (const { which, variant, isThere } of steps) {
      const object = pool[which]!(variant);
      const name = `${object.kind}/${object.metadata.name}`;
      if (isThere) await directory.apply(object);
      else if (present.has(name)) await directory.delete(object);
      if (isThere) present.add(name);
      else present.delete(name);
      await program.settled();
    }
  });
  const commits = lines.filter((line) => line.kind === 'commit');
  expect(commits.length).toBeGreaterThan(5);
  expect(commits.flatMap(({ resources }) => resources).length).toBeGreaterThan(20);
  expect(lines.at(-1)).toEqual({ kind: 'end', reason: 'it lasted as long as was asked for' });
  const good = await replay(lines);
  expect(good).toEqual({
    commits: commits.length,
    resources: expect.any(Number),
    end: 'it lasted as long as was asked for',
  });

  // One version in the last commit that changed something.
  const last = commits.findLast(({ resources }) => resources.some(([, version]) => version !== undefined))!;
  const index = last.resources.findIndex(([, version]) => version !== undefined);
  const [place, version = ''] = last.resources[index]!;
  const tampered = { ...last, resources: last.resources.with(index, [place, `${version}x`]) };
  expect(await replay(lines.map((line) => (line === last ? tampered : line)))).toMatchObject({
    difference: { commit: last.commit, resource: place, recorded: `${version}x`, computed: version },
  });

  // One character of an input, before anything else.
  const start = lines.map((line) =>
    line.kind === 'input' && line.input === 'objects.EndpointSlice'
      ? (JSON.parse(JSON.stringify(line).replace('10.1.0.9', '10.1.0.8')) as Line)
      : line,
  );
  expect((await replay(start)).difference).toMatchObject({ resource: expect.stringContaining('ratings') });
});

test('a recording has no private keys, and tells whether one was replaced', () => {
  const credential = (key: string) => ({
    exists: true,
    pair: { content: { certificates: 'public', key } },
    roots: {},
  });
  const [a, b] = ['secret one', 'secret two'].map((key) =>
    JSON.stringify(recordedWrite('credentials', 'k', credential(key))),
  );
  expect(a).toContain('public');
  expect(a).not.toContain('secret');
  expect(a).not.toBe(b);
  expect(recordedWrite('credentials', 'k', undefined)).toEqual({ input: 'credentials', key: 'k' });
});

test('what is not a recording, and one that was cut off, is said to be so', async () => {
  const file = join(await temporaryDirectory(), 'recording');
  await expect(replayFile(file)).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining('cannot be read'),
  });
  for (const [text, message] of [
    ['', 'ends before the recording began'],
    ['{"kind":"input"}\n', 'is not a recording that this version can read'],
    ['{"kind":"recor', ':1: not a line of a recording'],
  ] as const) {
    await writeFile(file, text);
    await expect(replayFile(file)).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining(message) });
  }
});

test('the last commits are told, with what caused them and what they changed', async () => {
  const directory = await Directory.create();
  await directory.apply(...reviews, rule, split(80, 20));
  const program = await directory.start();
  const proxy = await program.connect(true);
  await directory.apply(split(50, 50));
  await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
  const commits = JSON.parse((await get(program.serving.ports.health, '/debug/commits')).body) as object[];
  // The newest first: at most one has come since, which forgets the former weights.
  const changed = commits.find((commit) => JSON.stringify(commit).includes('RouteConfiguration 80'));
  expect(changed).toMatchObject({
    number: expect.any(Number),
    at: expect.any(String),
    delay: expect.any(Number),
    work: expect.any(Number),
    writes: 2,
    causes: ['VirtualService/shop/reviews'],
    names: expect.arrayContaining(['RouteConfiguration 80']),
  });
  expect(changed).toHaveProperty('bytes');
  expect(JSON.stringify(commits)).toContain('proxies sidecar~10.0.0.1~client.shop~shop.svc.cluster.local');
});
