import { ApiError } from './api-error.ts';

/** The error's reason if a response is longer than the limit. */
export const TOO_LARGE = 'AnswerTooLarge';

/** The text of a response. Stops reading and rejects with an `ApiError` if it has more than `most` bytes. */
export async function textOf(body: AsyncIterable<Uint8Array>, most: number): Promise<string> {
  const { chunks, whole } = await read(body, most);
  if (whole) return chunks.toString('utf8');
  const message = `the response is longer than ${most} bytes`;
  throw new ApiError(message, { code: 200, reason: TOO_LARGE, retryable: true });
}

/** The beginning of a response, for when the rest is not needed. */
export async function beginningOf(body: AsyncIterable<Uint8Array>, most: number): Promise<string> {
  return (await read(body, most)).chunks.subarray(0, most).toString('utf8');
}

async function read(
  body: AsyncIterable<Uint8Array>,
  most: number,
): Promise<{ readonly chunks: Buffer; readonly whole: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop ends the request.
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > most) break;
  }
  return { chunks: Buffer.concat(chunks), whole: size <= most };
}
