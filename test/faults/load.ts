import { createServer, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '../hitless/clients.ts';
import { localOf } from './localized.ts';

/** Between two requests of a client. Milliseconds. */
const PAUSE = { least: 5, more: 30 };

/** Every Pod that there is or ever was: it answers with its address. */
export async function startPods(port: number): Promise<{ close(): void }> {
  // Connections stay: one that closes while it is idle may meet a request.
  const server: Server = createServer({ keepAliveTimeout: 0 }, (request, response) =>
    response.end(request.socket.localAddress),
  );
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '0.0.0.0', resolve));
  return {
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Constant requests through proxies, to every service through each, on new connections and on kept ones. */
export class Load {
  readonly failures: string[] = [];
  requests = 0;
  readonly #random: () => number;
  readonly #loops: Promise<void>[] = [];
  #stopped = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** @param port of a proxy that forwards by the name of the host. */
  run(proxy: string, port: number, host: string): void {
    for (const fresh of [true, false]) this.#loops.push(this.#loop(proxy, clientOf(port, host, fresh), host));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(proxy: string, client: Client, host: string): Promise<void> {
    while (!this.#stopped) {
      const since = Date.now();
      const answer = await client.ask();
      this.requests++;
      if (!answer.startsWith('200 '))
        this.failures.push(
          `${new Date(since).toISOString()} ${proxy} ${host}: ${answer} after ${Date.now() - since} ms`,
        );
      await delay(PAUSE.least + this.#random() * PAUSE.more);
    }
    client.close();
  }
}

function clientOf(port: number, host: string, fresh: boolean): Client {
  return new Client({ id: '', protocol: 'http', fresh, tls: false, port, host, path: '/', routes: '' });
}

/** Whether requests for a host get to none but these Pods, as far as so many requests tell. */
export async function getsTo(
  port: number,
  host: string,
  addresses: readonly string[],
  requests = 40,
): Promise<boolean> {
  const client = clientOf(port, host, true);
  const found = new Set<string>();
  for (let i = 0; i < requests; i++) found.add(await client.ask());
  client.close();
  const wanted = new Set(addresses.map((address) => `200 ${localOf(address)}`));
  return [...found].every((answer) => wanted.has(answer));
}
