/**
 * `make run`: Fairlead, two Envoys and a small bookshop on this machine, until Ctrl-C. `--once` checks that requests go
 * where the files say, and exits. `--ports BASE|any` moves the ports, in a copy of the files.
 */
import { parseArgs } from 'node:util';
import { type Stage, EXAMPLE, copyExample, removeCopy, startStage } from './stage.ts';
import { lookOnce } from './once.ts';
import { showLive } from './live.ts';
import { USUAL_BASE, findBase } from './ports.ts';
import { RunError } from './run-error.ts';

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    // The second signal waits for nothing: everything still running is killed with this process.
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort();
  });
// The reader of the output may stop reading, like `head`.
process.stdout.on('error', () => stopping.abort());

try {
  process.exitCode = await run();
} catch (error) {
  if (!stopping.signal.aborted) {
    process.exitCode = 1;
    const message = error instanceof Error ? error.message : String(error);
    const isExpected = error instanceof RunError || message.startsWith('skipped: ');
    console.error(isExpected ? `error: ${message.replace('skipped: ', '')}` : error);
  }
}

async function run(): Promise<number> {
  const { once, ports } = readArguments();
  const started = performance.now();
  // `--once` modifies the files, and must not depend on what else runs on this machine.
  const base = ports === 'any' || (once && ports === undefined) ? await findBase() : (ports ?? USUAL_BASE);
  const copied = once || base !== USUAL_BASE;
  const directory = copied ? await copyExample(base) : EXAMPLE;
  let stage: Stage | undefined;
  try {
    stage = await startStage(directory, base, stopping.signal);
    console.log(
      `Fairlead, ${Object.keys(stage.proxies).length} Envoys and the bookshop run after ` +
        `${((performance.now() - started) / 1000).toFixed(1)} s: http://localhost:${stage.ports.gateway}/`,
    );
    const broken = new AbortController();
    void stage.broken.then((message) => broken.abort(new RunError(message)));
    const signal = AbortSignal.any([stopping.signal, broken.signal]);
    if (once) return (await lookOnce({ stage, directory, print: console.log, signal })) ? 0 : 1;
    await showLive({ stage, directory, out: process.stdout, signal });
    broken.signal.throwIfAborted();
    return 0;
  } finally {
    await stage?.stop();
    if (copied) await removeCopy(directory);
  }
}

function readArguments(): { readonly once: boolean; readonly ports: number | 'any' | undefined } {
  const { once, ports } = parseArgs({
    options: { once: { type: 'boolean', default: false }, ports: { type: 'string' } },
  }).values;
  if (ports === undefined || ports === 'any') return { once, ports };
  const base = Number(ports);
  if (!Number.isInteger(base) || base < 1024 || base > 65_400)
    throw new RunError(`PORTS=${ports}: must be the first of 100 ports from 1024 to 65400, or any`);
  return { once, ports: base };
}
