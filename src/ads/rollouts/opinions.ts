import { isProven, type Recipient, type Rejected } from './recipient.ts';
import type { RejectedByName } from './rejected-by-name.ts';

/** What some changes of resources of one type mean for some clients. */
interface Concern {
  readonly id: number;
  readonly typeUrl: string;
  readonly isLook: boolean;
  readonly names: { has(name: string): boolean };
  readonly waiting: ReadonlySet<Recipient>;
  readonly reached: Iterable<Recipient>;
  readonly rejections: ReadonlyMap<Recipient, RejectedByName>;
}

/** What all have in common whom some resources concern. */
export type Concerns = readonly Omit<Concern, 'typeUrl' | 'isLook' | 'names'>[];

/** Whom a resource concerns: mostly the same clients as many others. */
export class Audience {
  readonly concerns: Concerns;
  readonly waiting: ReadonlySet<Recipient>;
  readonly takers: readonly Recipient[];
  #proven: Audience | undefined;

  constructor(concerns: Concerns, waiting: ReadonlySet<Recipient>, takers: readonly Recipient[]) {
    this.concerns = concerns;
    this.waiting = waiting;
    this.takers = takers;
  }

  static of(concerns: Concerns): Audience {
    const waiting = new Set(concerns.flatMap((concern) => [...concern.waiting]));
    const reached = new Set(concerns.flatMap((concern) => [...concern.reached]));
    return new Audience(
      concerns,
      waiting,
      [...reached].filter((recipient) => !waiting.has(recipient)),
    );
  }

  /** Without those that have not proven their tenant. */
  get proven(): Audience {
    const waiting = (): ReadonlySet<Recipient> => new Set([...this.waiting].filter(isProven));
    return (this.#proven ??= new Audience(this.concerns, waiting(), this.takers.filter(isProven)));
  }
}

/** What clients make of a resource. */
export class Opinions {
  readonly #name: string;
  readonly #audience: Audience;

  constructor(name: string, audience: Audience) {
    this.#name = name;
    this.#audience = audience;
  }

  /** The clients that may yet take it or reject it, or have rejected it. */
  get waiting(): Audience['waiting'] {
    return this.#audience.waiting;
  }

  /** The clients that have acknowledged it. */
  get takers(): Audience['takers'] {
    return this.#audience.takers;
  }

  /** Found whenever it is asked for: many clients may reject thousands of names each. */
  get rejections(): ReadonlyMap<Recipient, Rejected> {
    const { concerns, waiting } = this.#audience;
    const found = new Map<Recipient, Rejected>();
    for (const { rejections } of concerns)
      for (const [recipient, all] of rejections) {
        const rejected = waiting.has(recipient) ? all.get(this.#name) : undefined;
        if (rejected !== undefined) found.set(recipient, rejected);
      }
    return found;
  }

  /** Without those that have not proven their tenant. */
  get proven(): Opinions {
    return new Opinions(this.#name, this.#audience.proven);
  }
}

/**
 * What all clients make of a resource. Whoever has not looked yet may come to have an opinion.
 * @param audienceOf the same object for the same concerns.
 */
export function opinionsOf(
  typeUrl: string,
  name: string,
  concerns: Iterable<Concern>,
  audienceOf: (concerns: Concerns) => Audience,
): Opinions {
  const own = Array.from(new Set(concerns)).filter(
    (concern) => concern.isLook || (concern.typeUrl === typeUrl && concern.names.has(name)),
  );
  return new Opinions(name, audienceOf(own));
}
