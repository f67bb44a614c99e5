import { EventEmitter, once } from 'node:events';
import { Metadata } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import type { Caller, Unauthenticated } from './authentication.ts';
import { SecureCalls } from './secure-calls.ts';
import { SecurePort } from './secure-port.ts';
import type { PeerIdentity } from '../types.ts';

const identity: PeerIdentity = { trustDomain: 'cluster.local', namespace: 'shop', serviceAccount: 'default' };

/** A call of one client, as grpc-js has it. */
class FakeCall extends EventEmitter {
  readonly metadata = new Metadata();

  getPeer(): string {
    return '10.0.0.1:40112';
  }
}

test('calls that are cancelled before it is known who is calling take no room from others', async () => {
  const waiting: ((found: PeerIdentity | Unauthenticated) => void)[] = [];
  const calls = new SecureCalls(new SecurePort({ connected: () => undefined, failed: () => undefined }), {
    host: '',
    port: 0,
    authenticate: (_: Caller) => new Promise((resolve) => waiting.push(resolve)),
    services: [],
    refused: () => undefined,
  });
  const answer = () => Promise.resolve({ response: new Uint8Array() });
  const [, { Method: handle }] = calls.unary({ path: '/Service/Method', call: answer });
  const begin = (call: FakeCall, done: (...args: unknown[]) => void): void =>
    (handle as (call: FakeCall, done: (...args: unknown[]) => void) => void)(call, done);
  for (let i = 0; i < 40; i++) {
    const call = new FakeCall();
    begin(call, () => expect.fail('it is over'));
    call.emit('cancelled');
  }
  for (const found of waiting.splice(0)) found(identity);
  await new Promise((resolve) => setImmediate(resolve));

  const call = new FakeCall();
  const done = new Promise((resolve) => begin(call, (...args) => resolve(args)));
  const asked = once(call, 'newListener');
  waiting[0]!(identity);
  await asked;
  await new Promise((resolve) => setImmediate(resolve));
  call.emit('data', Buffer.alloc(0));
  expect(await done).toEqual([null, new Uint8Array()]);
});
