import { expect, test } from 'vitest';
import { stateOf, type TypeState } from './stats.ts';
import type { AdsStream } from './stream.ts';
import { TypeHistory } from './type-history.ts';
import { type Asked, CDS, decodeFrame, EDS, encodeRequest, LDS, RDS, resource, TestServer } from '../testing/world.ts';

/** One delta stream, and what is told of it. */
class Lab {
  readonly #server = new TestServer();
  readonly #delivery = this.#server.open(this.#server.store.enter({ roots: ['mesh'], qualifiers: [] }), true);

  publish(typeUrl: string, name: string, content: string | undefined): void {
    const told = content === undefined ? {} : { resource: resource(typeUrl, name, content) };
    this.#server.store.apply({ members: [{ list: 'mesh', typeUrl, name, qualifier: '', ...told }], lists: [] });
    this.#server.frames.outdate();
  }

  ask(asked: Asked): void {
    this.#delivery.request(encodeRequest(asked, true, this.#server.hasher), 0);
  }

  /** The client answers what it is sent, if it is sent anything. */
  answer(error?: string): void {
    const frame = this.#delivery.next(0);
    if (frame === undefined) return;
    const { typeUrl, nonce } = decodeFrame(frame.slices, true);
    this.ask({ typeUrl, nonce, error });
  }

  state(typeUrl: string): TypeState {
    const proxy = { nodeId: 'n', build: '', drainMs: undefined };
    const stream = { id: 's', proxy, delivery: this.#delivery, history: new TypeHistory(), openedAt: 0 };
    const [state] = stateOf(stream as AdsStream, 0, 1);
    return state!.types.find((type) => type.typeUrl === typeUrl)!;
  }
}

test.each([RDS, LDS])('%s: a rejection is told while the rejected version is the present one', (typeUrl) => {
  const lab = new Lab();
  lab.publish(typeUrl, 'a', '1');
  lab.ask({ typeUrl, names: ['a'] });
  lab.answer();
  lab.publish(typeUrl, 'a', 'bad');
  lab.answer('no');
  expect(lab.state(typeUrl).rejected).toEqual(['a']);
  lab.answer();
  expect(lab.state(typeUrl).rejected).toEqual(['a']);
  lab.publish(typeUrl, 'a', '1');
  lab.answer();
  expect(lab.state(typeUrl).rejected).toEqual([]);
  lab.publish(typeUrl, 'a', 'bad');
  expect(lab.state(typeUrl).rejected).toEqual(['a']);
});

test.each([
  [CDS, 'that it is gone'],
  [EDS, 'what is sent in its place'],
])('%s: of a name that left the world it is told whether the client rejected %s', (typeUrl) => {
  const lab = new Lab();
  lab.ask({ typeUrl, names: ['a'] });
  lab.answer('no');
  expect(lab.state(typeUrl).rejected).toEqual(['a']);
});

test('everything is pending before the first answer', () => {
  const lab = new Lab();
  for (const name of ['a', 'b']) for (const typeUrl of [CDS, EDS]) lab.publish(typeUrl, name, '1');
  lab.ask({ typeUrl: EDS, names: ['a'] });
  lab.ask({ typeUrl: CDS });
  expect([lab.state(CDS), lab.state(EDS)].map(({ pending }) => pending)).toEqual([2, 1]);
  lab.answer();
  lab.answer();
  expect([lab.state(CDS), lab.state(EDS)].map(({ pending }) => pending)).toEqual([0, 0]);
});

test.each([CDS, EDS])(
  '%s: who comes with everything has been sent it and has accepted it, by a name for nothing',
  (typeUrl) => {
    const lab = new Lab();
    for (const each of [CDS, EDS]) lab.publish(each, 'a', '1');
    const names = typeUrl === EDS ? ['a'] : [];
    lab.ask({ typeUrl, names, initial: new Map([['a', '1']]) });
    expect(lab.state(typeUrl)).toMatchObject({ sent: 'resumed', acked: 'resumed', sentMs: undefined, synced: true });
    lab.publish(typeUrl, 'a', '2');
    expect(lab.state(typeUrl)).toMatchObject({ sent: '', acked: '', synced: false });
    lab.answer();
    const { sent, acked } = lab.state(typeUrl);
    expect([sent, acked]).toEqual([expect.stringMatching(/^\d+$/), sent]);
  },
);

test('who comes with nothing has not been sent anything before it is', () => {
  const lab = new Lab();
  lab.publish(EDS, 'a', '1');
  lab.ask({ typeUrl: EDS, names: ['a'] });
  expect(lab.state(EDS)).toMatchObject({ sent: '', acked: '', synced: false });
});
