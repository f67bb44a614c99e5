import { EventEmitter, once } from 'node:events';
import { Metadata } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import type { Caller, Unauthenticated } from './authentication.ts';
import { SecureCalls } from './secure-calls.ts';
import { SecurePort } from './secure-port.ts';
import type { UnaryService } from './server-options.ts';
import type { PeerIdentity } from '../types.ts';

const identity: PeerIdentity = {
  ...{ trustDomain: 'cluster.local', namespace: 'shop', serviceAccount: 'default' },
  ...{ cluster: 'Kubernetes', tenant: 'shop' },
};

/** A call of one client, as grpc-js has it. */
class FakeCall extends EventEmitter {
  readonly metadata = new Metadata();

  getPeer(): string {
    return '10.0.0.1:40112';
  }
}

type Done = (...args: unknown[]) => void;

/** Who is calling is said by the test. */
function start(answer: UnaryService['call']) {
  const waiting: ((found: PeerIdentity | Unauthenticated) => void)[] = [];
  const calls = new SecureCalls(new SecurePort({ connected: () => undefined, failed: () => undefined }), {
    host: '',
    port: 0,
    authenticate: (_: Caller) => new Promise((resolve) => waiting.push(resolve)),
    services: [],
    refused: () => undefined,
  });
  const [, { Method: handle }] = calls.unary({ path: '/Service/Method', call: answer });
  return {
    waiting,
    begin: (call: FakeCall, done: Done): void => (handle as (call: FakeCall, done: Done) => void)(call, done),
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('calls that are cancelled before it is known who is calling take no room from others', async () => {
  const { waiting, begin } = start(() => Promise.resolve({ response: new Uint8Array() }));
  for (let i = 0; i < 40; i++) {
    const call = new FakeCall();
    begin(call, () => expect.fail('it is over'));
    call.emit('cancelled');
  }
  for (const found of waiting.splice(0)) found(identity);
  await turn();

  const call = new FakeCall();
  const done = new Promise((resolve) => begin(call, (...args) => resolve(args)));
  const asked = once(call, 'newListener');
  waiting[0]!(identity);
  await asked;
  await turn();
  call.emit('data', Buffer.alloc(0));
  expect(await done).toEqual([null, new Uint8Array()]);
});

test('a namespace with a thousand calls waits for itself, and others have their turn', async () => {
  let running = 0;
  let answered = 0;
  const open: (() => void)[] = [];
  const { waiting, begin } = start(async () => {
    running++;
    await new Promise<void>((resolve) => open.push(resolve));
    running--;
    return { response: new Uint8Array() };
  });
  const refused: unknown[] = [];
  const call = async (namespace: string): Promise<FakeCall> => {
    const fake = new FakeCall();
    // As for a stream that is paused: it is said to whoever listens.
    fake.on('newListener', (event) => event === 'data' && setImmediate(() => fake.emit('data', Buffer.alloc(0))));
    begin(fake, (error) => (error === null ? answered++ : refused.push(error)));
    waiting.pop()!({ ...identity, namespace, tenant: namespace });
    await turn();
    return fake;
  };
  const hostile = await Promise.all(Array.from({ length: 1_000 }, () => call('hostile')));
  await turn();
  expect(running).toBe(8);
  await call('shop');
  await call('bank');
  await turn();
  expect(running).toBe(10);
  // Who gives up has no turn.
  for (const fake of hostile.slice(8)) fake.emit('cancelled');
  while (open.length > 0) {
    for (const end of open.splice(0)) end();
    await turn();
    await turn();
  }
  expect([answered, refused]).toEqual([10, []]);

  for (let i = 0; i < 3_000; i++) await call('hostile');
  expect(refused).toHaveLength(3_000 - 2_048);
  expect(refused[0]).toMatchObject({ details: 'too many calls; try again' });
});
