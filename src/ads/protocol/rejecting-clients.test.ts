import { expect, test } from 'vitest';
import { CDS, decodeFrame, encodeRequest, resource, type Asked, TestServer } from '../testing/world.ts';
import { shareForRejected } from './rejected-room.ts';
import type { WorldView } from '../store/world.ts';

const NAMES = Array.from({ length: 200 }, (_, i) => `cluster-${i}`);

/** A client of many clusters that one object changes, and that it rejects. */
class Rejecter {
  readonly server: TestServer;
  readonly view: WorldView;
  readonly #delta: boolean;
  readonly #delivery;
  #version = '';
  #now = 0;
  /** How often the world was asked for a resource. */
  looks = 0;

  /** @param isNew it rejects the first that it is sent. */
  constructor(delta: boolean, server = new TestServer(), isNew = false) {
    this.#delta = delta;
    this.server = server;
    this.view = this.server.store.enter({ roots: ['mesh'], qualifiers: [] });
    const resolve = this.view.resolve.bind(this.view);
    this.view.resolve = (...args) => {
      this.looks++;
      return resolve(...args);
    };
    this.#delivery = this.server.open(this.view, delta);
    if (isNew) this.publish('bad');
    else this.publish('good');
    this.ask({ names: delta ? ['*'] : [] });
    this.answerAll(isNew ? 'it is bad' : undefined);
    if (isNew) return;
    this.publish('bad');
    this.answerAll('it is bad');
  }

  publish(content: string): void {
    const rollouts = [this.server.rollouts.begin('object')];
    const members = NAMES.map((name) => ({
      ...{ list: 'mesh', typeUrl: CDS, name, qualifier: '', rollouts },
      resource: resource(CDS, name, content),
    }));
    this.server.store.apply({ members, lists: [] });
    this.server.frames.outdate();
  }

  ask(asked: Partial<Asked>): void {
    this.#delivery.request(encodeRequest({ typeUrl: CDS, ...asked }, this.#delta, this.server.hasher), this.#now);
  }

  answerAll(error?: string): void {
    for (let frame = this.#delivery.next(this.#now); frame !== undefined; frame = this.#delivery.next(this.#now)) {
      const { nonce, version } = decodeFrame(frame.slices, this.#delta);
      if (error === undefined) this.#version = version;
      this.ask({ nonce, error, ...(this.#delta ? {} : { version: this.#version }) });
    }
  }

  close(): void {
    this.#delivery.close();
  }

  /** What it has rejected is due for another try. */
  retry(): void {
    this.#now += 60_000;
    this.#delivery.tick(this.#now);
  }

  /** By client, names of what it rejects. */
  get rejected(): readonly (readonly string[])[] {
    const { concerns } = this.server.rollouts.get('object')!;
    const rejections = [...concerns].flatMap(({ rejections }) => [...rejections]);
    const byClient = Map.groupBy(rejections, ([client]) => client);
    return [...byClient.values()].map((all) => all.flatMap(([, rejected]) => [...rejected.keys()]));
  }
}

test.each([
  ['delta', true],
  ['state of the world', false],
])('%s: requests that change nothing cost nothing, however much a client rejects', (_, delta) => {
  const client = new Rejecter(delta);
  expect(client.rejected).toEqual([NAMES]);
  client.looks = 0;
  for (let i = 0; i < 10; i++) client.ask({ nonce: '1', version: '' });
  expect(client.looks).toBe(0);
  expect(client.rejected).toEqual([NAMES]);
});

test('a request for something else does not have all that a client rejects looked at', () => {
  const client = new Rejecter(true);
  client.looks = 0;
  client.ask({ names: ['another'] });
  client.answerAll();
  expect(client.looks).toBeLessThan(10);
});

test('a whole state that a client rejects is not looked at name by name, until somebody asks what the client rejects', () => {
  const client = new Rejecter(false, new TestServer(), true);
  const looks = Array.from({ length: 5 }, (_, i) => {
    client.publish(`worse ${i}`);
    client.looks = 0;
    client.answerAll('it is bad');
    return client.looks;
  });
  // What has changed is looked at when it is sent.
  expect(looks).toEqual(looks.map(() => NAMES.length));
  expect(client.rejected.map(({ length }) => length)).toEqual([6 * NAMES.length]);
  client.looks = 0;
  const rejections = client.server.rollouts.get('object')!.rejections();
  expect([...rejections.values()]).toMatchObject([{ name: NAMES[0], version: 'worse 4', message: 'it is bad' }]);
  expect(client.looks).toBe(1);
});

test('what a client takes after all it does not reject', () => {
  const client = new Rejecter(true);
  client.retry();
  client.answerAll();
  expect(client.rejected).toEqual([]);
  expect(client.server.rollouts.get('object')!.waiting().size).toBe(0);
});

test('there is room for a bounded number of rejected names, half of it for one address, until their clients are gone', () => {
  const server = new TestServer();
  server.rejected = shareForRejected(4 * NAMES.length * 1_000);
  const clients = [new Rejecter(true, server), new Rejecter(true, server)];
  expect(() => new Rejecter(true, server)).toThrow('no room left for what this client rejects');
  clients[0]!.close();
  expect(new Rejecter(true, server).rejected.length).toBeGreaterThan(0);
});

test('each change of the same names takes room, as long as the client rejects it', () => {
  const server = new TestServer();
  server.rejected = shareForRejected(2 * NAMES.length * (1_000 + 2 * 150));
  const client = new Rejecter(true, server);
  const reject = (content: string): void => {
    client.publish(content);
    client.answerAll('it is bad');
  };
  for (let i = 0; i < 3; i++) reject(`worse ${i}`);
  expect(() => reject('worst')).toThrow('no room left for what this client rejects');
});
