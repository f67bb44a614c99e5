import { type NewRefusal, Refusals } from './refusals.ts';
import { type Held, Served, versionOf } from './served.ts';

/**
 * What a client is owed of one type, by name. A name that is in none of these is current at the client, and that is
 * nearly every name nearly always: the maps exist only while they have something in them.
 */
export class Ledger {
  /** Owed names, with what the client holds of them (as far as responses on their way will be accepted). */
  pending: Map<string, Held> | undefined;
  /** Owed names that have to be answered even if the client holds the present version. */
  asked: Set<string> | undefined;
  /** Names that left the world and are served on, unchanged. */
  kept: Map<string, Held> | undefined;
  refusals: Refusals | undefined;

  clear(): void {
    this.pending = this.asked = this.kept = undefined;
  }

  owe(name: string, held: Held): void {
    (this.pending ??= new Map<string, Held>()).set(name, held);
  }

  /** Owed in any case. */
  ask(name: string, held: Held): void {
    if (this.pending?.has(name) !== true) this.owe(name, held);
    (this.asked ??= new Set<string>()).add(name);
  }

  keep(name: string, held: Held): void {
    (this.kept ??= new Map<string, Held>()).set(name, held);
  }

  /** Ends the keeping of a name; what the client holds of it. */
  unkeep(name: string): Held {
    const held = this.kept?.get(name);
    this.kept?.delete(name);
    if (this.kept?.size === 0) this.kept = undefined;
    return held;
  }

  /** `was` is what the client holds unless the name is owed already; `gone`: it left the world, and clients keep it. */
  mark(name: string, was: Held, gone: boolean): void {
    if (this.kept?.has(name) === true) {
      if (gone) return;
      const kept = this.unkeep(name);
      if (this.pending?.has(name) !== true) this.owe(name, kept);
      return;
    }
    const owed = this.pending?.has(name) === true;
    const held = owed ? this.pending!.get(name) : was;
    const uses = this.uses(name, held);
    if (!gone) {
      if (!owed) this.owe(name, uses);
      return;
    }
    if (uses !== undefined) this.keep(name, uses);
    if (owed && uses !== undefined && uses === held && this.asked?.has(name) !== true) this.settled(name);
  }

  /** What the client uses where it is thought to hold this: something else if that was refused. */
  uses(name: string, held: Held): Held {
    const version = versionOf(held);
    return version !== undefined && this.refusals?.forbids(name, version) === true ? this.refusals.held(name) : held;
  }

  /** Not owed any more. */
  settled(name: string): void {
    if (this.pending?.delete(name) === true && this.pending.size === 0) this.pending = undefined;
    if (this.asked?.delete(name) === true && this.asked.size === 0) this.asked = undefined;
  }

  /** The client does not want it any more. */
  forget(name: string): void {
    this.settled(name);
    this.unkeep(name);
    this.refusals?.forget(name);
  }

  refuse(name: string, refusal: NewRefusal): void {
    (this.refusals ??= new Refusals()).refuse(name, refusal);
  }

  /** It left the world, and what the client had when it last refused something of it is not certain. */
  uncertain(name: string, present: Served | undefined): boolean {
    return present === undefined && this.kept?.has(name) !== true && this.refusals?.has(name) === true;
  }

  /** What this client is to be given, where the world has `present`. */
  offer(name: string, present: Served | undefined): Served | undefined {
    const kept = present ?? this.kept?.get(name);
    if (!(kept instanceof Served)) return undefined;
    if (this.refusals?.forbids(name, kept.version) !== true) return kept;
    const held = this.refusals.held(name);
    return held instanceof Served ? held : undefined;
  }

  /** The client holds something that nobody has the bytes of, and is to be left alone with it. */
  unknown(name: string, present: Served | undefined): boolean {
    if (present === undefined) return typeof this.kept?.get(name) === 'string';
    return this.refusals?.forbids(name, present.version) === true && typeof this.refusals.held(name) === 'string';
  }

  /** Whether something else than the world's own resources is to be offered of some name. */
  get deviates(): boolean {
    return this.kept !== undefined || (this.refusals?.size ?? 0) > 0;
  }
}
