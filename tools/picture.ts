/**
 * Draws the picture of the README: the screen of `make run`, a few seconds after the weights of the reviews were changed.
 * `make picture` runs the bookshop with its real Envoys and writes docs/images/make-run.svg, with the date.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { showLive } from './run/live.ts';
import { USUAL_BASE, findBase, portsFrom } from './run/ports.ts';
import { type Stage, EXAMPLE, copyExample, removeCopy, startStage } from './run/stage.ts';
import { type Frame, drawFrame, lastFrame } from './run/frame.ts';

const PICTURE = join(import.meta.dirname, '../docs/images/make-run.svg');
const WIDTH = 118;
/** How long requests are sent before the weights change, and after that. Milliseconds. */
const [BEFORE, AFTER] = [10_000, 7_000];

await writeFile(PICTURE, drawFrame(await record(), new Date().toISOString().slice(0, 10)));

async function record(): Promise<Frame> {
  // Whatever else runs on this machine.
  const base = await findBase();
  const directory = await copyExample(base);
  const ending = new AbortController();
  let stage: Stage | undefined;
  let written = '';
  const out = {
    ...{ isTTY: true, columns: WIDTH, rows: 40 },
    write: (text: string) => (written += text),
  } as unknown as NodeJS.WriteStream;
  try {
    stage = await startStage(directory, base, ending.signal);
    const showing = showLive({ stage, directory, out, signal: ending.signal });
    await delay(BEFORE);
    const file = join(directory, 'reviews.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('weight: 80', 'weight: 50').replace('weight: 20', 'weight: 50'));
    await delay(AFTER);
    ending.abort();
    await showing;
    return lastFrame(asUsual(written.replaceAll(directory, EXAMPLE), base));
  } finally {
    await stage?.stop();
    await removeCopy(directory);
  }
}

/** With the ports that `make run` has unless it is told others. */
function asUsual(text: string, base: number): string {
  const usual = Object.values(portsFrom(USUAL_BASE));
  return Object.values(portsFrom(base)).reduce((all, port, i) => all.replaceAll(`${port}`, `${usual[i]}`), text);
}
