import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { RecordRequest } from '../cli/program.ts';
import { UsageError } from '../cli/usage-error.ts';

/** `fairlead record`: saves what a running server sends of itself. */
export async function recordServer(
  { file, server, seconds }: RecordRequest,
  signal: AbortSignal,
): Promise<{ readonly bytes: number }> {
  const response = await fetch(`http://${server}/debug/record?seconds=${seconds}`, { signal }).catch(
    (error: unknown) => {
      throw new UsageError(`--server: ${server} does not answer (${causeOf(error)}); is it running, on this machine?`);
    },
  );
  if (!response.ok || response.body === null)
    throw new UsageError(`--server: ${server} answers ${response.status}: ${(await response.text()).trim()}`);
  const target = createWriteStream(file, { mode: 0o600 });
  await pipeline(Readable.fromWeb(response.body as ReadableStream), target, { signal });
  return { bytes: target.bytesWritten };
}

function causeOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
