import { describe, expect, test } from 'vitest';
import { Lab } from '../testing/lab.ts';
import { CDS, EDS, LDS, RDS } from '../testing/world.ts';

interface Answerable {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly version: string;
}

/** A client of the clusters `a` and `b` and of a table that leads to one of them. */
class Flapping {
  readonly #lab: Lab;
  readonly #names: Readonly<Record<string, string[]>> = { [EDS]: ['a', 'b'], [RDS]: ['t'] };
  readonly #delta: boolean;
  /** Responses with tables, which it has not answered. */
  readonly unanswered: Answerable[] = [];
  /** When it was told that `a` is gone. */
  toldAt: number | undefined;

  constructor(delta: boolean) {
    this.#delta = delta;
    this.#lab = new Lab(delta);
    const lab = this.#lab;
    for (const name of ['a', 'b']) lab.publish([CDS, name, '1'], [EDS, name, '1']);
    lab.publish([LDS, 'l', '1'], [RDS, 't', '1', ['a']]);
    for (const typeUrl of [CDS, EDS, LDS, RDS]) lab.take({ typeUrl, names: this.#names[typeUrl] ?? [] });
    lab.pass(60, this.#names);
  }

  get now(): number {
    return this.#lab.now;
  }

  goes(answersTables = true): void {
    this.#lab.publish([RDS, 't', '2', ['b']]);
    this.#lab.publish([CDS, 'a', undefined]);
    this.#lab.publish([EDS, 'a', undefined]);
    this.#read(answersTables);
  }

  comesBack(): void {
    this.#lab.publish([CDS, 'a', '1'], [EDS, 'a', '1']);
    this.#lab.publish([RDS, 't', '3', ['a']]);
    this.#read(true);
  }

  /** Without a tick. */
  passes(ms: number): void {
    this.#lab.now += ms;
  }

  ticks(seconds: number, answersTables = true): void {
    for (let i = 0; i < seconds && this.toldAt === undefined; i++) {
      this.#lab.now += 1_000;
      this.#lab.delivery.tick(this.#lab.now);
      this.#read(answersTables);
    }
  }

  answers(): void {
    for (const response of this.unanswered.splice(0)) this.#answer(response);
  }

  #read(answersTables: boolean): void {
    for (let response = this.#lab.next(); response !== undefined; response = this.#lab.next()) {
      const { typeUrl, resources, removed } = response;
      const isGone = this.#delta ? removed.includes('a') : ![...resources.keys()].includes('a');
      if (typeUrl === CDS && isGone) this.toldAt ??= this.now;
      if (typeUrl === RDS && !answersTables) this.unanswered.push(response);
      else this.#answer(response);
    }
  }

  #answer({ typeUrl, nonce, version }: Answerable): void {
    this.#lab.ask({ typeUrl, nonce, version, names: this.#delta ? [] : (this.#names[typeUrl] ?? []) });
  }
}

describe.each([
  ['delta', true],
  ['state of the world', false],
])('%s: a cluster that comes back and goes again between two ticks', (_, delta) => {
  test('stays for as long after its last use as any other', () => {
    const client = new Flapping(delta);
    client.goes();
    client.ticks(5);
    client.passes(200);
    client.comesBack();
    client.passes(600);
    client.goes();
    const letGo = client.now;
    client.ticks(20);
    expect(client.toldAt! - letGo).toBeGreaterThanOrEqual(5_000);
  });

  test('waits anew for the answer of the table that let go of it', () => {
    const client = new Flapping(delta);
    client.goes(false);
    client.ticks(14, false);
    client.answers();
    client.passes(100);
    client.comesBack();
    client.passes(300);
    client.goes(false);
    const letGo = client.now;
    client.ticks(30, false);
    expect(client.unanswered).toHaveLength(1);
    expect(client.toldAt! - letGo).toBeGreaterThanOrEqual(10_000 + 5_000);
  });
});
