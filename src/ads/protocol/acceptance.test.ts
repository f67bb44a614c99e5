import { expect, test } from 'vitest';
import { Canaries } from './canaries.ts';
import type { Delivery } from './delivery.ts';
import { type Asked, decodeFrame, encodeRequest, LDS, resource, type Response, TestServer } from '../testing/world.ts';

/** Clients in state of the world. */
class Lab {
  readonly #server = new TestServer();

  constructor() {
    this.#server.canaries = new Canaries({ now: () => 0, after: () => {}, isOn: true });
    this.#server.tenant = 'shop';
  }

  publish(name: string, content: string): void {
    const encoded = resource(LDS, name, content);
    const member = { list: 'mesh', typeUrl: LDS, name, qualifier: '', resource: encoded };
    this.#server.store.apply({ members: [member], lists: [] });
    this.#server.frames.outdate();
  }

  open(): Delivery {
    return this.#server.open(this.#server.store.enter({ roots: ['mesh'], qualifiers: [] }), false);
  }

  ask(delivery: Delivery, asked: Omit<Asked, 'typeUrl'>): void {
    delivery.request(encodeRequest({ typeUrl: LDS, ...asked }, false, this.#server.hasher), 0);
  }

  next(delivery: Delivery): Response | undefined {
    const frame = delivery.next(0);
    return frame && decodeFrame(frame.slices, false);
  }
}

test('a client that only repeats a rejection proves nothing of what it has rejected', () => {
  const lab = new Lab();
  lab.publish('l', 'good');
  const other = lab.open();
  lab.ask(other, {});
  const { nonce, version } = lab.next(other)!;
  lab.ask(other, { nonce, version });
  lab.publish('l', 'bad');
  // It was connected before, and does not say what it has: there is nothing else to give it.
  const resumed = lab.open();
  lab.ask(resumed, { version: 'of another server' });
  const first = lab.next(resumed)!;
  lab.ask(resumed, { nonce: first.nonce, version: 'of another server', error: 'l: no' });
  expect(lab.next(other)).toBeUndefined();
  lab.publish('m', '1');
  const second = lab.next(resumed)!;
  expect(Object.fromEntries(second.resources)).toEqual({ l: 'bad', m: '1' });
  lab.ask(resumed, { nonce: second.nonce, version: 'of another server', error: 'l: no' });
  expect(Object.fromEntries(lab.next(other)!.resources)).toEqual({ l: 'good', m: '1' });
});
