import { isProven, type Recipient, type Refused } from './recipient.ts';
import type { RefusedByName } from './refused-by-name.ts';

/** Whom something concerns. */
export interface Concerned {
  readonly id: number;
  readonly waiting: ReadonlySet<Recipient>;
  readonly reached: Iterable<Recipient>;
}

/** Whom a resource concerns: mostly the same clients as many others. */
export class Audience {
  /** Those that may yet take it or refuse it, or have refused it. */
  readonly waiting: ReadonlySet<Recipient>;
  /** Those that have acknowledged it. */
  readonly takers: readonly Recipient[];
  #proven: Audience | undefined;

  constructor(waiting: ReadonlySet<Recipient>, takers: readonly Recipient[]) {
    this.waiting = waiting;
    this.takers = takers;
  }

  static of(concerns: readonly Concerned[]): Audience {
    const waiting = new Set<Recipient>();
    const reached = new Set<Recipient>();
    for (const concern of concerns) {
      for (const recipient of concern.waiting) waiting.add(recipient);
      for (const recipient of concern.reached) reached.add(recipient);
    }
    return new Audience(
      waiting,
      [...reached].filter((recipient) => !waiting.has(recipient)),
    );
  }

  /** Those that have proven their tenant. */
  get proven(): Audience {
    return (this.#proven ??= new Audience(new Set([...this.waiting].filter(isProven)), this.takers.filter(isProven)));
  }
}

/** What clients make of a resource. */
export class Opinions {
  readonly #audience: Audience;
  readonly refusals: ReadonlyMap<Recipient, Refused>;

  constructor(audience: Audience, refusals: ReadonlyMap<Recipient, Refused>) {
    this.#audience = audience;
    this.refusals = refusals;
  }

  get waiting(): Audience['waiting'] {
    return this.#audience.waiting;
  }

  get takers(): Audience['takers'] {
    return this.#audience.takers;
  }

  /** Of those that have proven their tenant. */
  get proven(): Opinions {
    return new Opinions(
      this.#audience.proven,
      new Map([...this.refusals].filter(([recipient]) => isProven(recipient))),
    );
  }
}

/** What some changes of resources of one type mean for some clients. */
interface Concern extends Concerned {
  readonly typeUrl: string;
  readonly isLook: boolean;
  readonly names: { has(name: string): boolean };
  readonly refusals: ReadonlyMap<Recipient, RefusedByName>;
}

/**
 * What all clients make of a resource. Whoever has not looked yet may come to have an opinion.
 * @param audienceOf the same object for the same concerns.
 */
export function opinionsOf(
  typeUrl: string,
  name: string,
  concerns: Iterable<Concern>,
  audienceOf: (concerns: readonly Concerned[]) => Audience,
): Opinions {
  const own = Array.from(new Set(concerns)).filter(
    (concern) => concern.isLook || (concern.typeUrl === typeUrl && concern.names.has(name)),
  );
  const refusals = new Map<Recipient, Refused>();
  for (const concern of own)
    for (const [recipient, all] of concern.refusals) {
      const refused = all.get(name);
      if (refused !== undefined) refusals.set(recipient, refused);
    }
  return new Opinions(audienceOf(own), refusals);
}
