import type { Recipient, Refused } from './recipient.ts';
import type { RefusedByName } from './refused-by-name.ts';

/** What clients make of a resource. */
export interface Opinions {
  /** Those that may yet take it or refuse it, or have refused it. */
  readonly waiting: ReadonlySet<Recipient>;
  readonly refusals: ReadonlyMap<Recipient, Refused>;
  /** Those that have acknowledged it. */
  readonly takers: readonly Recipient[];
}

/** What some changes of resources of one type mean for some clients. */
interface Concern {
  readonly typeUrl: string;
  readonly isLook: boolean;
  readonly names: { has(name: string): boolean };
  readonly waiting: ReadonlySet<Recipient>;
  readonly reached: Iterable<Recipient>;
  readonly refusals: ReadonlyMap<Recipient, RefusedByName>;
}

/** What all clients make of a resource. Whoever has not looked yet may come to have an opinion. */
export function opinionsOf(typeUrl: string, name: string, concerns: Iterable<Concern>): Opinions {
  const waiting = new Set<Recipient>();
  const reached = new Set<Recipient>();
  const refusals = new Map<Recipient, Refused>();
  for (const concern of new Set(concerns)) {
    if (!concern.isLook && (concern.typeUrl !== typeUrl || !concern.names.has(name))) continue;
    for (const recipient of concern.waiting) waiting.add(recipient);
    for (const recipient of concern.reached) reached.add(recipient);
    for (const [recipient, refused] of concern.refusals) {
      const own = refused.get(name);
      if (own !== undefined) refusals.set(recipient, own);
    }
  }
  return { waiting, refusals, takers: [...reached].filter((recipient) => !waiting.has(recipient)) };
}
