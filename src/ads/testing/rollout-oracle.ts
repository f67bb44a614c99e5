import { type Asked, CDS, LDS, type Response } from './world.ts';

/** What the server knows that a client wants. */
interface Wish {
  readonly wildcard: boolean;
  readonly names: ReadonlySet<string>;
}

/** A name, as a world has it: content, what it was made from, and the rollouts that brought it. */
export interface Visible {
  readonly text: string;
  readonly origins: readonly string[];
  readonly brought: readonly string[];
}

/** By `type name`. */
export type Sight = ReadonlyMap<string, Visible>;

/** What was published: by `type name`, the rollouts that touched it. A move touches everything. */
export type Touched = ReadonlyMap<string, readonly string[]>;

interface Written extends Response {
  /** Its place in the log. */
  readonly at: number;
  /** It has everything that there was to say. */
  readonly isFirst: boolean;
}

/** A rollout changed a name that the client wants, or the client asked for what was made from it. */
interface Obligation {
  readonly rollout: string;
  readonly name: string;
  /** Its place in the log: what was written before does not count. */
  readonly at: number;
  /** What the name has been since, newest last. */
  readonly texts: Set<string>;
}

/** Rollouts that are waited for together: what was found in one look, or asked for in one request. */
interface Group {
  readonly rollouts: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
  /** The first response since: names that have come to be equal count as part of it. */
  first: string | undefined;
}

const GONE = '(gone)';
/** A client that comes back in state of the world does not say what it has. */
const UNSURE = '(unsure)';

/** One type on one stream. */
class TypeLog {
  wish: Wish = { wildcard: false, names: new Set() };
  asked = false;
  unanswered: Written[] = [];
  /** It has rejected a whole state, and not said why. */
  rejectsAll = false;
  newest: Written | undefined;
  obligations: Obligation[] = [];
  groups: Group[] = [];
  /** By name, what the client has said that it has. */
  readonly confirmed = new Map<string, string>();
  /** By name, what it was sent last. */
  readonly sent = new Map<string, string>();
  /** Names that it has asked for, and not been sent since. */
  readonly asks = new Set<string>();
  /** `name@content` that it has rejected. */
  readonly rejected = new Set<string>();

  wants(name: string): boolean {
    return this.wish.wildcard || this.wish.names.has(name);
  }
}

/**
 * Says whom a rollout has to wait for, from what was published and what went over the wire, and from nothing else: for
 * one stream.
 */
export class RolloutOracle {
  readonly #delta: boolean;
  readonly #resumed: boolean;
  readonly #wholeStates: ReadonlySet<string>;
  readonly #types: ReadonlyMap<string, TypeLog>;
  readonly #open: (rollout: string) => boolean;
  #at = 0;
  /** Since the last publication, and the last request. */
  #hadTurn = true;
  #seen: Sight;
  #sight: Sight;
  /** Published since the client's last look, oldest first. */
  #unseen: { readonly touched: Touched; readonly changed: ReadonlyMap<string, string>; isMove: boolean; at: number }[] =
    [];
  /** Answers that a response is waiting for, in the words of the log. */
  readonly acknowledged = new Set<string>();

  constructor(
    sight: Sight,
    options: {
      readonly delta: boolean;
      /** It was connected before. */
      readonly resumed: boolean;
      readonly typeUrls: readonly string[];
      /** Types of which a response in state of the world has everything. */
      readonly wholeStates: readonly string[];
      readonly isOpen: (rollout: string) => boolean;
    },
  ) {
    this.#seen = this.#sight = sight;
    this.#delta = options.delta;
    this.#resumed = options.resumed;
    this.#wholeStates = new Set(options.delta ? [] : options.wholeStates);
    this.#types = new Map(options.typeUrls.map((typeUrl) => [typeUrl, new TypeLog()]));
    this.#open = options.isOpen;
  }

  /** What the client's world has from now on, because of these rollouts. */
  published(sight: Sight, touched: Touched, isMove = false): void {
    this.#at++;
    this.#hadTurn = false;
    const texts = [...touched.keys()].map((key) => [key, textOf(sight, key)] as const);
    const changed = new Map(texts.filter(([key, text]) => text !== textOf(this.#sight, key)));
    this.#unseen.push({ touched, changed, isMove, at: this.#at });
    for (const [typeUrl, type] of this.#types)
      for (const { name, texts } of type.obligations) texts.add(textOf(sight, `${typeUrl} ${name}`));
    this.#sight = sight;
  }

  /** Nothing has changed but what is still under way. */
  sees(sight: Sight): void {
    this.#sight = sight;
  }

  /** The server looks what has changed for the client: whenever it has a turn, and before each request. */
  looked(): void {
    for (const [typeUrl, type] of this.#types) {
      type.obligations.push(...this.#unseenObligations(typeUrl, type));
      const names = new Set<string>();
      const rollouts = new Set<string>();
      const moved = this.#unseen.some(({ isMove }) => isMove);
      for (const { touched } of this.#unseen)
        for (const [key, by] of touched) {
          if (moved) for (const each of by) rollouts.add(each);
          const [of, name = ''] = key.split(' ');
          if (of !== typeUrl || !type.wants(name)) continue;
          names.add(name);
          for (const each of by) rollouts.add(each);
        }
      if (names.size > 0) type.groups.push({ names, rollouts, first: undefined });
    }
    this.#unseen = [];
    this.#seen = this.#sight;
    this.#forgetEqual();
  }

  /** What the client has by now, however it came by it, is not waited for when it changes again. */
  #forgetEqual(): void {
    for (const [typeUrl, type] of this.#types)
      type.obligations = type.obligations.filter(({ name }) => this.#isOutstanding(typeUrl, type, name));
  }

  /** Equal bytes concern nobody, however they came to be equal. */
  #unseenObligations(typeUrl: string, type: TypeLog): Obligation[] {
    const found = new Map<string, Obligation[]>();
    for (const { touched, changed, at } of this.#unseen)
      for (const [key, text] of changed) {
        const [of, name = ''] = key.split(' ');
        if (of !== typeUrl || !type.wants(name)) continue;
        const texts = new Set([textOf(this.#sight, key)]);
        const all = touched.get(key)!.map((rollout) => ({ rollout, name, at, texts }));
        // What it had all along, or has again, the client need not acknowledge.
        found.set(key, text === textOf(this.#seen, key) ? [] : [...(found.get(key) ?? []), ...all]);
      }
    return [...found.values()].flat();
  }

  written(response: Response): void {
    const type = this.#types.get(response.typeUrl)!;
    const written = { ...response, at: ++this.#at, isFirst: type.newest === undefined };
    type.unanswered.push(written);
    type.newest = written;
    for (const group of type.groups) group.first ??= response.nonce;
    for (const [name, text] of this.#carried(written, type)) {
      type.sent.set(name, text);
      type.asks.delete(name);
    }
  }

  /** @param wish what the server knows after this request. */
  heard(asked: Asked, wish: Wish): void {
    const { typeUrl, names: listed = [], initial } = asked;
    this.#hadTurn = false;
    const type = this.#types.get(typeUrl)!;
    this.#at++;
    this.#answer(type, asked);
    const before = type.asked ? type.wish : NOTHING;
    const isFirst = !type.asked;
    type.asked = true;
    type.wish = wish;
    if (isFirst && this.#resumed) {
      for (const name of [...this.#names(typeUrl, type), ...(initial?.keys() ?? [])])
        if (this.#delta) type.confirmed.set(name, initial?.get(name) ?? GONE);
        else type.confirmed.set(name, UNSURE);
    }
    for (const name of [...type.confirmed.keys(), ...type.sent.keys()])
      if (!type.wants(name)) for (const map of [type.confirmed, type.sent]) map.delete(name);
    type.obligations = type.obligations.filter(({ name }) => type.wants(name));
    const names = new Set<string>();
    const rollouts = new Set<string>();
    for (const name of wish.names)
      if (!before.names.has(name) || (this.#delta && listed.includes(name)))
        if (!(isFirst && type.confirmed.get(name) === textOf(this.#sight, `${typeUrl} ${name}`)) || !this.#resumed)
          type.asks.add(name);
    for (const name of this.#names(typeUrl, type)) {
      const key = `${typeUrl} ${name}`;
      const { origins: made, brought } = this.#sight.get(key) ?? { origins: [], brought: [] };
      const origins = [...new Set([...made, ...brought])].filter((each) => this.#open(each));
      names.add(name);
      for (const rollout of origins) rollouts.add(rollout);
      const isNew = !before.wildcard && !before.names.has(name);
      if (!isNew && !(this.#delta && listed.includes(name))) continue;
      for (const rollout of origins)
        type.obligations.push({ rollout, name, at: this.#at, texts: new Set([textOf(this.#sight, key)]) });
    }
    if (rollouts.size > 0) type.groups.push({ names, rollouts, first: undefined });
    this.#forgetEqual();
  }

  #answer(type: TypeLog, { nonce = '', version, error }: Asked): void {
    const index = type.unanswered.findIndex((each) => each.nonce === nonce);
    if (nonce === '' || index < 0) return;
    const answered = type.unanswered[index]!;
    const upTo = this.#delta ? type.unanswered.splice(index, 1) : type.unanswered.splice(0, index + 1);
    if (error === undefined) for (const each of upTo) this.#accept(type, each, []);
    else if (!this.#delta && upTo.length > 1 && version === answered.version) this.#accept(type, answered, []);
    else {
      const named = [...answered.resources.keys()].filter((name) => error.includes(`${name}: no`));
      const isKnown = (name: string): boolean => type.rejected.has(`${name}@${answered.resources.get(name)}`);
      // It may only repeat what was known when the response was sent.
      if (named.length > 0 && named.every(isKnown)) this.#accept(type, answered, named);
      for (const each of upTo)
        for (const [name, text] of each.resources) if (text.startsWith('bad')) type.rejected.add(`${name}@${text}`);
      if (named.length === 0 && this.#wholeStates.has(answered.typeUrl)) type.rejectsAll = true;
      for (const each of upTo) for (const [name] of this.#carried(each, type)) type.confirmed.set(name, UNSURE);
    }
  }

  #accept(type: TypeLog, response: Written, except: readonly string[]): void {
    type.rejectsAll = false;
    for (const [name, text] of this.#carried(response, type)) {
      if (except.includes(name)) continue;
      type.confirmed.set(name, text);
      type.obligations = type.obligations.filter((each) => {
        const isDone = each.name === name && each.at < response.at && each.texts.has(text);
        if (isDone) this.acknowledged.add(each.rollout);
        return !isDone;
      });
    }
  }

  /** What a response says of each name. */
  #carried({ typeUrl, resources, removed }: Response, type: TypeLog): Map<string, string> {
    const carried = new Map([...resources].map(([name, text]) => [name, text === 'absent' ? GONE : text]));
    for (const name of removed) carried.set(name, GONE);
    if (this.#wholeStates.has(typeUrl))
      for (const name of this.#names(typeUrl, type)) if (!carried.has(name)) carried.set(name, GONE);
    return carried;
  }

  #names(typeUrl: string, type: TypeLog): ReadonlySet<string> {
    const known = [...this.#sight.keys()]
      .filter((key) => key.startsWith(`${typeUrl} `))
      .map((key) => key.split(' ')[1]!);
    const all = [...known, ...type.wish.names, ...type.sent.keys(), ...type.confirmed.keys()];
    return new Set(all.filter((name) => type.wants(name)));
  }

  /** The rollouts that must wait for this client. */
  must(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const [typeUrl, type] of this.#types)
      for (const { rollout, name } of [...type.obligations, ...this.#unseenObligations(typeUrl, type)])
        if (this.#isOutstanding(typeUrl, type, name)) found.add(rollout);
    return found;
  }

  #isOutstanding(typeUrl: string, type: TypeLog, name: string): boolean {
    const text = textOf(this.#sight, `${typeUrl} ${name}`);
    // What left the world may be kept for as long as something uses it, and nobody waits for that.
    if (text === GONE && (typeUrl !== LDS || this.#resumed || !type.sent.has(name))) return false;
    const has = type.confirmed.get(name) ?? GONE;
    // A whole state repeats what the client has.
    return has !== text || type.unanswered.some((each) => (this.#carried(each, type).get(name) ?? has) !== has);
  }

  /** Why a rollout may wait for this client; undefined: it must not. */
  may(rollout: string): string | undefined {
    for (const { touched } of this.#unseen)
      for (const by of touched.values()) if (by.includes(rollout)) return 'it has not looked';
    for (const [typeUrl, type] of this.#types) {
      if (type.rejected.size > 0) return `it rejects ${typeUrl}`;
      const groups = type.groups.filter(({ rollouts }) => rollouts.has(rollout));
      if (groups.length === 0) continue;
      if (!this.#hadTurn) return 'its turn has not come';
      if (this.#isHeldBack(typeUrl)) return 'it is held back behind clusters';
      if (this.#owes(typeUrl, type)) return `it is owed ${typeUrl}`;
      for (const { names, first } of groups)
        for (const each of type.unanswered)
          if (each.nonce === first) return `it has not answered ${typeUrl} ${first}`;
          else
            for (const name of each.isFirst ? names : this.#carried(each, type).keys())
              if (names.has(name)) return `it has not answered ${typeUrl} ${each.nonce}`;
    }
    return undefined;
  }

  /** Whether the client rejects what has become of something that the rollout changed. */
  blames(rollout: string): boolean {
    return [...this.#types].some(([typeUrl, type]) =>
      type.groups.some(
        ({ rollouts, names }) =>
          rollouts.has(rollout) &&
          [...names].some(
            (name) => type.rejectsAll || type.rejected.has(`${name}@${textOf(this.#sight, `${typeUrl} ${name}`)}`),
          ),
      ),
    );
  }

  /** To be called when the server has no more to write. */
  rested(): void {
    this.#hadTurn = true;
    for (const [typeUrl, type] of this.#types)
      if (type.unanswered.length === 0 && type.rejected.size === 0 && !this.#owes(typeUrl, type))
        if (!this.#isHeldBack(typeUrl)) type.groups = [];
  }

  /** Nothing of it is looked at while clusters are on their way. */
  #isHeldBack(typeUrl: string): boolean {
    return typeUrl !== CDS && this.#types.get(CDS)!.unanswered.length > 0;
  }

  #owes(typeUrl: string, type: TypeLog): boolean {
    if (!type.asked) return false;
    const wantsAny = type.wish.wildcard || type.wish.names.size > 0;
    if (type.newest === undefined && wantsAny && !(this.#resumed && this.#delta)) return true;
    for (const name of type.asks) if (type.wants(name)) return true;
    for (const name of this.#names(typeUrl, type)) {
      const text = textOf(this.#sight, `${typeUrl} ${name}`);
      const has = type.sent.get(name) ?? type.confirmed.get(name);
      if (text !== GONE && has !== text) return true;
      if (text === GONE && typeUrl === LDS && has !== undefined && has !== GONE) return true;
    }
    return false;
  }

  /** It is over: nobody is waited for any more. */
  forget(rollout: string): void {
    for (const type of this.#types.values())
      type.obligations = type.obligations.filter((each) => each.rollout !== rollout);
  }

  /** Types of which the client has rejected something. */
  get rejects(): boolean {
    return [...this.#types.values()].some(({ rejected }) => rejected.size > 0);
  }
}

const NOTHING: Wish = { wildcard: false, names: new Set() };

function textOf(sight: Sight, key: string): string {
  return sight.get(key)?.text ?? GONE;
}
