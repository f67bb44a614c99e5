import { runCli } from './cli.ts';

/** How long the rest of the program may take to end after the command has, in milliseconds. */
const GRACE = 5_000;

/** Runs the command line of this process and sets its exit code. The first SIGINT or SIGTERM shuts it down cleanly. */
export async function runProcess(run: typeof runCli = runCli): Promise<void> {
  const stop = new AbortController();
  const onSignal = (): void => {
    // The second signal has its default effect: it kills the process.
    for (const signal of signals) process.removeListener(signal, onSignal);
    stop.abort();
  };
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, onSignal);
  // The reader of the output may stop reading, like `head`. The result stays the same.
  let isRead = true;
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') process.exit(1);
    isRead = false;
  });

  // Nothing is left that could end the command: it waits for something that was given up, such as an API server that is
  // gone. A command that was told to end has not failed, but Node would say so.
  const onIdle = (): void => {
    if (!stop.signal.aborted)
      process.stderr.write('error: the command waits for something that cannot happen any more\n');
    process.exit(stop.signal.aborted ? 0 : 1);
  };
  process.once('beforeExit', onIdle);
  process.exitCode = await run(process.argv.slice(2), {
    program: async () => (await import('../app.ts')).createProgram(),
    out: (text) => void (isRead && process.stdout.write(text)),
    err: (text) => void process.stderr.write(text),
    env: process.env,
    signal: stop.signal,
  });
  process.removeListener('beforeExit', onIdle);
  stop.abort();
  setTimeout(() => process.exit(), GRACE).unref();
}
