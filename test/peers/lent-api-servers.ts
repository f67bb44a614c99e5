import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { EtcdContents } from './etcd-contents.ts';
import { LENDER } from './borrowed-api-server.ts';
import { startApiServer, type RunningApiServer } from './api-server.ts';
import { poll } from './process.ts';

/** What an API server writes for itself, soon after it is ready. */
const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

interface Lent {
  readonly server: RunningApiServer;
  readonly contents: EtcdContents;
}

/**
 * Lends API servers to test files, which have them for themselves and give them back: starting one costs several seconds
 * of CPU. One that comes back is as it was when it had just started. There are as many as are borrowed at one time.
 *
 * For vitest, once for all workers.
 */
export default async function lendApiServers(): Promise<() => Promise<void>> {
  const free: Lent[] = [];
  const all: Lent[] = [];
  const ending = new AbortController();

  const take = async (): Promise<Lent> => {
    const found = free.pop();
    if (found !== undefined) return found;
    const server = await startApiServer({ controllers: false, signal: ending.signal });
    const contents = new EtcdContents(server.access.etcdUrl);
    const lent = { server, contents };
    all.push(lent);
    await poll('the namespaces of an API server', async () => ((await isComplete(server)) ? true : undefined));
    await contents.remember();
    return lent;
  };
  const serve = async (socket: Socket): Promise<void> => {
    const ended = new Promise((resolve) => socket.once('close', resolve));
    // A borrower that is killed resets the connection.
    socket.on('error', () => undefined).resume();
    const lent = await take();
    socket.write(`${JSON.stringify(lent.server.access)}\n`);
    await ended;
    await lent.contents.restore();
    await poll('an API server without foreign namespaces', async () =>
      (await namespacesOf(lent.server)).length === NAMESPACES.length ? true : undefined,
    );
    free.push(lent);
  };
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-lender-'));
  const path = join(directory, 'socket');
  const lender = createServer((socket) => {
    serve(socket).catch((error: unknown) => {
      if (!ending.signal.aborted) console.error('An API server cannot be lent:', error);
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => lender.listen(path, resolve));
  process.env[LENDER] = path;
  return async () => {
    ending.abort();
    lender.close();
    await Promise.all(all.map(({ server }) => server.stop()));
    await rm(directory, { recursive: true, force: true });
  };
}

/** From the cache of the API server, which is behind its store for a moment. */
async function namespacesOf(server: RunningApiServer): Promise<readonly string[]> {
  const { items } = (await server.call('GET', '/api/v1/namespaces?resourceVersion=0')) as unknown as {
    readonly items: readonly { readonly metadata: { readonly name: string } }[];
  };
  return items.map(({ metadata }) => metadata.name);
}

async function isComplete(server: RunningApiServer): Promise<boolean> {
  const present = await namespacesOf(server);
  if (!NAMESPACES.every((name) => present.includes(name))) return false;
  return server.call('GET', '/api/v1/namespaces/default/services/kubernetes').then(
    () => true,
    () => false,
  );
}
