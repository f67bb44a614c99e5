import { runCli } from './cli.ts';

/** How long the rest of the program may take to end after the command has, in milliseconds. */
const GRACE = 5_000;

/** Runs the command line of this process and sets its exit code. The first SIGINT or SIGTERM shuts it down cleanly. */
export async function runProcess(): Promise<void> {
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

  process.exitCode = await runCli(process.argv.slice(2), {
    program: async () => (await import('../app.ts')).createProgram(),
    out: (text) => void (isRead && process.stdout.write(text)),
    err: (text) => void process.stderr.write(text),
    env: process.env,
    signal: stop.signal,
  });
  stop.abort();
  setTimeout(() => process.exit(), GRACE).unref();
}
