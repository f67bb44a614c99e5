import { randomInt } from 'node:crypto';
import { createServer, type ListenOptions } from 'node:net';

/** Systems give connections that go out a port from 32768 on: one that is listened on later has to be below. */
const PORTS = { first: 20_000, count: 12_000 };

/**
 * Distinct ports on 127.0.0.1 that are free. No other process of this network namespace is given one of them before
 * this one ends.
 */
export async function freePorts(count: number, range = PORTS): Promise<number[]> {
  const ports: number[] = [];
  const start = randomInt(range.count);
  for (let i = 0; i < range.count && ports.length < count; i++) {
    const port = range.first + ((start + i) % range.count);
    if ((await reserve(port)) && (await isFree(port))) ports.push(port);
  }
  if (ports.length < count) throw new Error(`only ${ports.length} of ${count} ports are free from ${range.first} on`);
  return ports;
}

/** Holds the abstract socket that is named after the port, which the kernel removes with this process. */
function reserve(port: number): Promise<boolean> {
  // Nowhere else are there sockets like that.
  if (process.platform !== 'linux') return Promise.resolve(true);
  return listens({ path: `\0fairlead-port-${port}` });
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const free = await listens({ port, host: '127.0.0.1' }, server);
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}

function listens(where: ListenOptions, server = createServer().unref()): Promise<boolean> {
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(where, () => resolve(true));
  });
}
