import { expect, test } from 'vitest';
import { Graph } from '../cache/graph.ts';
import { Encoder } from '../envoy/encode/encoder.ts';
import { createProtos } from '../envoy/encode/proto.ts';
import { buildMesh } from '../mesh.ts';
import { ONE, defaultMeshOptions } from '../mesh/inputs.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { Recorder } from './recorder.ts';
import type { Line } from './recording.ts';

const protos = createProtos();

function lab() {
  const graph = new Graph();
  const mesh = buildMesh(graph, new Encoder(protos));
  const clock = new FakeClock();
  const touch = (): void => void graph.commit([mesh.inputs.options.write(ONE, defaultMeshOptions)]);
  touch();
  const recorder = new Recorder({ mesh, touch, version: '1', clock });
  const change = (i: number): void =>
    void graph.commit([mesh.inputs.secretAccess.write('shop/a', { allowed: i % 2 === 0 })]);
  const read = async (lines: AsyncIterable<string> | undefined): Promise<Line[]> => {
    const found: Line[] = [];
    for await (const line of lines!) if (line !== '\n') found.push(JSON.parse(line) as Line);
    return found;
  };
  return { clock, recorder, change, read };
}

test('there is one recording at a time, and the next one when it ends', async () => {
  const { clock, recorder, read } = lab();
  const reading = read(recorder.record(1_000));
  await clock.settle();
  expect(recorder.record(1_000)).toBeUndefined();
  await clock.advance(1_000);
  const kinds = (await reading).map(({ kind }) => kind);
  expect([kinds[0], ...kinds.slice(-2)]).toEqual(['recording', 'begin', 'end']);
  expect(recorder.record(1_000)).toBeDefined();
});

test('a reader that is too slow gets what was kept for it, and is told that this is all', async () => {
  const { clock, recorder, change } = lab();
  const lines = recorder.record(1_000)![Symbol.asyncIterator]();
  const next = async (): Promise<Line> => JSON.parse((await lines.next()).value as string) as Line;
  expect(await next()).toMatchObject({ kind: 'recording' });
  expect(await next()).toMatchObject({ kind: 'input', input: 'options' });
  for (let i = 0; i < 1_500; i++) change(i);
  const found: Line[] = [];
  do found.push(await next());
  while (found.at(-1)!.kind !== 'end');
  expect(found.filter(({ kind }) => kind === 'commit')).toHaveLength(1_000);
  expect(found.at(-1)).toEqual({ kind: 'end', reason: 'the reader is too slow' });
  expect(clock.pending).toBeLessThanOrEqual(1);
});

test('a reader that leaves while nothing happens is noticed, and costs nothing more', async () => {
  const { clock, recorder } = lab();
  const lines = recorder.record(3_600_000)![Symbol.asyncIterator]();
  for (let line = await lines.next(); (JSON.parse(line.value as string) as Line).kind !== 'begin';)
    line = await lines.next();
  const waiting = lines.next();
  const left = lines.return!();
  await clock.advance(10_000);
  expect(await waiting).toEqual({ done: false, value: '\n' });
  await left;
  expect(recorder.record(1_000)).toBeDefined();
  expect(clock.pending).toBe(0);
});
