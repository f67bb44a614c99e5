import { Server } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { listen } from './listener.ts';

/** The server below the listener. */
async function start(failed: (error: Error) => void): Promise<Server> {
  const listening = vi.spyOn(Server.prototype, 'listen');
  onTestFinished(() => listening.mockRestore());
  const options = { host: '127.0.0.1', port: 0, most: 10, connected: () => {}, refused: () => {}, failed };
  const listener = await listen(options);
  onTestFinished(() => listener.close());
  return listening.mock.contexts[0] as Server;
}

test('a connection that the system does not hand over ends nothing, however often', async () => {
  const failures: string[] = [];
  const server = await start(({ message }) => failures.push(message));
  for (let i = 0; i < 3; i++) server.emit('error', new Error('accept EMFILE'));
  expect(failures).toEqual(Array.from({ length: 3 }, () => 'accept EMFILE'));
  expect(server.listening).toBe(true);
});

test('an address that cannot be had is an error', async () => {
  const options = { host: '192.0.2.1', port: 1, most: 10, connected: () => {}, refused: () => {}, failed: () => {} };
  await expect(listen(options)).rejects.toThrow('EADDRNOTAVAIL');
});
