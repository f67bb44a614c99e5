import type { Clock } from './clock.ts';

export interface DoubtOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Absent: every list is believed. */
  readonly doubtsLists?: true;
  /** A list is not believed, and the one before was. */
  readonly onDoubt?: (counts: { readonly known: number; readonly vanished: number }) => void;
}

/** A list that lacks more than half of what is known is believed when another one, this much later, agrees. Milliseconds. */
const DOUBT_MS = 30_000;

/**
 * With fewer known objects, lists are believed at once: one Deployment or one namespace may be more than half of them,
 * and its end is an everyday thing. The Pods of a cluster's own components are already more.
 */
const FEWEST = 10;

/**
 * Whether to believe a list in which most objects have vanished. A server that was restored, or that answers for
 * another cluster, may send one; that is not a reason to leave every client without endpoints.
 */
export class Doubt {
  private readonly options: DoubtOptions;
  /** What the list in doubt lacks. */
  private vanished: ReadonlySet<string> = new Set();
  private since = 0;

  constructor(options: DoubtOptions) {
    this.options = options;
  }

  /** How many objects are kept although the last list lacked them. */
  get kept(): number {
    return this.vanished.size;
  }

  /** When to list again, on the clock; undefined: the last list was believed. */
  get until(): number | undefined {
    return this.kept === 0 ? undefined : this.since + DOUBT_MS;
  }

  /** Adds to a list that was just completed those of the known objects that are kept although it lacks them. */
  complete<V>(found: Map<string, V>, known: ReadonlyMap<string, V>): Map<string, V> {
    const { doubtsLists, onDoubt } = this.options;
    if (doubtsLists !== true) return found;
    const isNew = this.kept === 0;
    for (const key of this.judge(found, known)) found.set(key, known.get(key)!);
    if (isNew && this.kept > 0) onDoubt?.({ known: known.size, vanished: this.kept });
    return found;
  }

  private judge(found: ReadonlyMap<string, unknown>, known: ReadonlyMap<string, unknown>): ReadonlySet<string> {
    const now = this.options.clock.now();
    const missing = new Set<string>();
    for (const key of known.keys()) if (!found.has(key)) missing.add(key);
    const isPlausible = known.size < FEWEST || 2 * missing.size <= known.size;
    const { until } = this;
    // A list that comes earlier, because a watch could not be resumed, confirms nothing.
    const isConfirmed = until !== undefined && now >= until;
    if (until === undefined) this.since = now;
    return (this.vanished = isPlausible || isConfirmed ? new Set() : missing);
  }
}
