import { readDeltaRequest, writeRawResponse } from './messages.ts';

/** Whose clients get all there is. */
const WILDCARD = /\.(Cluster|Listener)$/;

/** What one stream is answered from saved resources: for each request, the responses to it. */
export function savedAnswers(
  saved: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>,
): (request: Uint8Array) => readonly Buffer[] {
  let nonce = 0;
  const asked = new Set<string>();
  return (request) => {
    const { typeUrl, names } = readDeltaRequest(request);
    const of = saved.get(typeUrl);
    // Of a type that is not saved, nothing comes.
    if (of === undefined) return [];
    const wanted = !asked.has(typeUrl) && WILDCARD.test(typeUrl) ? [...of.keys()] : names;
    asked.add(typeUrl);
    if (wanted.length === 0) return [];
    return [
      writeRawResponse({
        typeUrl,
        nonce: `saved-${++nonce}`,
        resources: wanted.flatMap((name) => (of.has(name) ? [[name, of.get(name)!] as const] : [])),
        // Envoy would wait for what is not there.
        removed: wanted.filter((name) => !of.has(name)),
      }),
    ];
  };
}
