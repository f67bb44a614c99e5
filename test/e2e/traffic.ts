import { Agent, createServer, request, type IncomingMessage, type Server } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** An HTTP service that answers with its name, or with what it finds in the request. */
export interface Backend {
  readonly port: number;
  close(): void;
}

export async function startBackend(answer: string | ((request: IncomingMessage) => string)): Promise<Backend> {
  const answerTo = typeof answer === 'string' ? () => answer : answer;
  // Connections stay: one that closes while it is idle may meet a request.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => response.end(answerTo(request)));
  return {
    port: await listen(server),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** What a request got: `200 v1`, or the error's code. */
export type Answer = string;

/** One request on a connection of its own. */
export function ask(port: number, host: string): Promise<Answer> {
  return send(port, host, new Agent());
}

/** A client that sends one request after the other, all the time, with a short pause after each. */
export interface SteadyClient {
  /** Settles with the first answer from now on that is this one. */
  until(answer: Answer): Promise<void>;
  /** Settles after so many further answers. */
  more(count: number): Promise<void>;
  /** Ends it: its answers in order, with repetitions left out. */
  stop(): Promise<Answer[]>;
}

export function startSteadyClient(
  port: number,
  host: string,
  signal: AbortSignal,
  address?: string,
  pauseMs = 1,
): SteadyClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const answers: Answer[] = [];
  let waiting: { readonly seen: (answer: Answer) => boolean; readonly resolve: () => void }[] = [];
  let stopped = false;
  const loop = (async () => {
    while (!stopped && !signal.aborted) {
      const answer = await send(port, host, agent, address);
      if (answers.at(-1) !== answer) answers.push(answer);
      const done = waiting.filter(({ seen }) => seen(answer));
      waiting = waiting.filter((each) => !done.includes(each));
      for (const { resolve } of done) resolve();
      await delay(pauseMs);
    }
    agent.destroy();
  })();
  const wait = (seen: (answer: Answer) => boolean): Promise<void> =>
    new Promise((resolve) => waiting.push({ seen, resolve }));
  return {
    until: (answer) => wait((seen) => seen === answer),
    more: (count) => {
      let left = count;
      return wait(() => --left <= 0);
    },
    async stop() {
      stopped = true;
      await loop;
      return answers;
    },
  };
}

function send(port: number, host: string, agent: Agent, address = '127.0.0.1'): Promise<Answer> {
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException): void => resolve(error.code ?? error.message);
    request({ host: address, port, headers: { host }, agent }, (response) => {
      void bodyOf(response).then((body) => resolve(`${response.statusCode} ${body}`.trim()), failed);
    })
      .on('error', failed)
      .end();
  });
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += String(chunk);
  return body;
}

/** Stands for the Service of the replicas: connections go to the first port that takes them. */
export interface Frontend {
  readonly port: number;
  use(...ports: readonly number[]): void;
  /** Ends all connections, and takes none until it may use a port again. */
  cut(): void;
  close(): void;
}

export async function startFrontend(): Promise<Frontend> {
  let targets: readonly number[] = [];
  const sockets = new Set<Socket>();
  const server = createTcpServer((client) => {
    sockets.add(client);
    client.on('close', () => sockets.delete(client)).on('error', () => client.destroy());
    const attempt = ([port, ...others]: readonly number[]): void => {
      if (port === undefined) return void client.destroy();
      const upstream = connect(port, '127.0.0.1');
      const refused = (): void => attempt(others);
      upstream.once('error', refused).once('connect', () => {
        upstream.off('error', refused).on('error', () => client.destroy());
        upstream.on('close', () => client.destroy());
        client.on('close', () => upstream.destroy());
        client.pipe(upstream).pipe(client);
      });
    };
    attempt(targets);
  });
  return {
    port: await listen(server),
    use: (...ports) => {
      targets = ports;
    },
    cut() {
      targets = [];
      for (const socket of sockets) socket.destroy();
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
