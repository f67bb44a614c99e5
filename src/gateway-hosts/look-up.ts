import { Resolver } from 'node:dns/promises';
import type { LookedUp } from './host-addresses.ts';

/** Asks the name servers of this machine for all addresses of a name. Rejects with an error that has a code. */
export async function lookUpHost(host: string, signal: AbortSignal, servers?: readonly string[]): Promise<LookedUp> {
  const resolver = new Resolver({ timeout: 3_000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = (): void => resolver.cancel();
  signal.throwIfAborted();
  signal.addEventListener('abort', cancel);
  const answers = await Promise.allSettled([
    resolver.resolve4(host, { ttl: true }),
    resolver.resolve6(host, { ttl: true }),
  ]);
  signal.removeEventListener('abort', cancel);
  const records = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (records.length > 0) {
    // Half an answer would take away the gateways of the other family.
    const failure = answers.find((answer) => answer.status === 'rejected' && !hasNone(answer.reason));
    if (failure === undefined)
      return { addresses: records.map(({ address }) => address), ttl: Math.min(...records.map(({ ttl }) => ttl)) };
    throw (failure as PromiseRejectedResult).reason as Error;
  }
  const [failed] = answers.filter((answer) => answer.status === 'rejected');
  throw (failed?.reason as Error | undefined) ?? new Error('no addresses');
}

/** There are no addresses of this family. */
function hasNone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENODATA' || code === 'ENOTFOUND';
}
