import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { ListenError } from '../../base/listen-error.ts';
import { Connections } from '../../ops/connections.ts';
import type { AppAddress } from './app-address.ts';
import { type AppProbe, runProbe } from './app-probes.ts';
import { type MetricsSources, writeEnvoyMetrics, writeMetrics } from './metrics.ts';

export interface StatusSources {
  /** Undefined: ready; or why not, as one line. */
  readonly notReady: () => Promise<string | undefined>;
  readonly probes: ReadonlyMap<string, AppProbe>;
  readonly app: AppAddress;
  readonly metrics: MetricsSources;
  /** What is known about this agent, as JSON. */
  readonly status: () => object;
  /** Drains now; a signal that follows ends at once. */
  readonly drain: () => Promise<void>;
  /** Ends without draining. */
  readonly quit: () => void;
}

/** Connections at a time: the kubelet, Envoy and a scraper need few. Whoever has most loses its oldest to a new one. */
const CONNECTIONS = 256;

/**
 * Scrapes at a time: behind each that is read slowly, or never, Envoy keeps all of its figures, which are megabytes in a
 * large mesh. Here, too, whoever has most loses its oldest.
 */
const SCRAPES = 8;

/** Milliseconds without a byte in either direction. */
const IDLE = 60_000;

/** The port that the kubelet, scrapers and the containers of the Pod ask: Istio's 15020. Rejects if it is taken. */
export async function serveStatus(port: number, sources: StatusSources): Promise<Server> {
  const scrapes = new Connections(SCRAPES);
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 30_000 }, (request, response) => {
    answer(request, response, sources, scrapes).catch(() => response.destroy());
  });
  // So a connection is one piece of work, and not as many as fit into a pipeline.
  server.maxRequestsPerSocket = 1;
  server.setTimeout(IDLE);
  const open = new Connections(CONNECTIONS);
  server.on('connection', (socket) => open.add(socket, socket.remoteAddress));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // All addresses, of both families where there are both.
    server.listen(port, resolve);
  }).catch((cause: unknown) => {
    throw new ListenError('agent status', { host: '', port }, cause);
  });
  return server;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  sources: StatusSources,
  scrapes: Connections,
): Promise<void> {
  request.resume();
  const { url = '/' } = request;
  const at = url.indexOf('?');
  const [path, query] = at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at)];
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const probe = sources.probes.get(path);
  if (probe !== undefined) {
    response.setTimeout(probe.timeout + IDLE);
    const { status, body } = await runProbe(probe, sources.app, { headers: request.headers, signal: gone.signal });
    return send(response, status, body);
  }
  switch (path) {
    case '/healthz/ready': {
      const problem = await sources.notReady();
      return send(response, problem === undefined ? 200 : 503, problem === undefined ? '' : `${problem}\n`);
    }
    case '/stats/prometheus':
    case '/metrics':
      scrapes.add(response, clientOf(request));
      return writeMetrics(sources.metrics, query, request, response, gone.signal);
    // What Envoy's own port asks for others.
    case '/stats/envoy':
      scrapes.add(response, clientOf(request));
      return writeEnvoyMetrics(sources.metrics, query, response, gone.signal);
    case '/status':
      return send(response, 200, `${JSON.stringify(sources.status(), undefined, 2)}\n`, 'application/json');
    case '/drain':
    case '/quitquitquit': {
      const refusal = refusalOf(request);
      if (refusal !== undefined) return send(response, ...refusal);
      if (path === '/drain') await sources.drain();
      send(response, 200, 'ok\n');
      if (path === '/quitquitquit') sources.quit();
      return;
    }
    default:
      return path.startsWith('/app-health/') || path.startsWith('/app-lifecycle/')
        ? send(response, 400, 'this Pod has no such probe\n')
        : send(response, 404, 'not found\n');
  }
}

const peerOf = ({ socket }: IncomingMessage): string => (socket.remoteAddress ?? '').replace(/^::ffff:/, '');

const isHere = (address: string): boolean => address === '::1' || address === '127.0.0.1';

/** Envoy asks for others, and puts the address of whoever asked it last. Who is in this Pod may claim any. */
function clientOf(request: IncomingMessage): string {
  const peer = peerOf(request);
  const { 'x-forwarded-for': forwarded = '' } = request.headers;
  return isHere(peer) ? String(forwarded).split(',').at(-1)!.trim() : peer;
}

/** Only who is in this Pod may end it. What Envoy passes on from outside comes from 127.0.0.6. */
function refusalOf(request: IncomingMessage): readonly [status: number, body: string] | undefined {
  const { method } = request;
  if (!isHere(peerOf(request))) return [403, 'only from this Pod\n'];
  return method === 'POST' ? undefined : [405, 'only POST\n'];
}

function send(response: ServerResponse, status: number, body: string, type = 'text/plain'): void {
  response.writeHead(status, { 'content-type': type, 'x-content-type-options': 'nosniff' });
  response.end(body);
}
