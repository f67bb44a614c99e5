import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createTcpServer, type Server } from 'node:net';
import { addressOf, BACKENDS, type Ports } from './world.ts';

/** How many of the first attempts at a path that fails do so. */
const FAILING = 0.2;

/** All back ends on all of their ports: each answers with its number. Connections stay open. */
export async function startBackends({ targets }: Ports, random: () => number): Promise<void> {
  const statusOf = (path: string | undefined, headers: IncomingHttpHeaders): number =>
    path === '/fails' && headers['x-envoy-attempt-count'] === '1' && random() < FAILING ? 503 : 200;
  for (let backend = 0; backend < BACKENDS; backend++) {
    for (const port of targets.http) {
      const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
        response.writeHead(statusOf(request.url, request.headers)).end(`${backend}`);
      });
      await listen(server, port, backend);
    }
    for (const port of targets.http2) {
      const server = createHttp2Server((request, response) => {
        response.writeHead(statusOf(request.url, request.headers)).end(`${backend}`);
      });
      await listen(server, port, backend);
    }
    for (const port of targets.tcp) {
      const server = createTcpServer((socket) => {
        socket.on('error', () => socket.destroy()).once('data', () => socket.end(`${backend}`));
      });
      await listen(server, port, backend);
    }
  }
}

function listen(server: Pick<Server, 'listen' | 'once'>, port: number, backend: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, addressOf(backend), resolve);
  });
}
