import { type IncomingMessage, type ServerResponse, request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { type AppAddress, local } from './app-address.ts';
import type { ScrapeTarget } from './scrape-targets.ts';

export interface MetricsSources {
  /** Of the agent itself, in the text format. */
  readonly own: () => string;
  /** Undefined: there is none. */
  readonly envoy: { readonly host: string; readonly port: number } | undefined;
  /** Whether Envoy's are among all; otherwise somebody else asks for them. */
  readonly mergesEnvoy: boolean;
  readonly app: AppAddress;
  readonly targets: readonly ScrapeTarget[];
  /** Counts a source that did not answer. */
  readonly failed: (source: 'envoy' | 'app') => void;
}

/** Milliseconds. Scrapers themselves wait for ten seconds. */
const TIMEOUT = 8_000;

const TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Writes the metrics of the agent, of Envoy and of the application, in this order. All are asked at once; nothing is kept
 * in memory: who has its turn later waits with its answer. The signal fires when the scraper is gone.
 */
export async function writeMetrics(
  { own, envoy, mergesEnvoy, app, targets, failed }: MetricsSources,
  query: string,
  from: IncomingMessage,
  to: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const headers = { accept: from.headers.accept ?? '*/*' };
  const [ofEnvoy, ...ofApp] = await Promise.all([
    mergesEnvoy && envoy && openEnvoy(envoy, query, signal).catch(() => failed('envoy')),
    ...targets.map((target) =>
      open({ ...target, host: app.host, headers, signal, ...local(app) }).catch(() => failed('app')),
    ),
  ]);
  const answered = ofApp.filter((each) => each !== undefined);
  // An answer in OpenMetrics ends with a mark, which comes last: of one it stays, of several it is put there once.
  const isOpen = answered.length > 0 && answered.every(isOpenMetrics);
  const isOne = answered.length === 1;
  to.writeHead(200, {
    'content-type': (isOne || isOpen ? answered[0]?.headers['content-type'] : undefined) ?? TEXT,
  });
  const sources = [
    ...(ofEnvoy ? [['envoy', ofEnvoy] as const] : []),
    ...answered.map((each) => ['app', each] as const),
  ];
  const body = async function* (): AsyncGenerator<string | Buffer> {
    yield own();
    for (const [name, source] of sources)
      try {
        yield* name === 'envoy' || isOne ? (source as AsyncIterable<Buffer>) : withoutMark(source);
      } catch (error) {
        failed(name);
        throw error;
      }
    if (isOpen && !isOne) yield MARK;
  };
  // Half an answer is not ended: the scraper would take it for a whole one.
  await pipeline(body, to).catch(() => to.destroy());
  // Whoever was not reached: its connection must not stay.
  for (const [, source] of sources) source.destroy();
}

/** Writes the metrics of Envoy alone, as they are. Nothing is kept in memory. The signal fires when the scraper is gone. */
export async function writeEnvoyMetrics(
  { envoy, failed }: MetricsSources,
  query: string,
  to: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const answered = envoy && (await openEnvoy(envoy, query, signal).catch(() => failed('envoy')));
  if (answered === undefined) return void to.writeHead(503, { 'content-type': TEXT }).end();
  to.writeHead(200, { 'content-type': answered.headers['content-type'] ?? TEXT });
  await pipeline(answered, to).catch(() => to.destroy());
}

const MARK = '# EOF\n';

const isOpenMetrics = ({ headers }: IncomingMessage): boolean =>
  headers['content-type']?.startsWith('application/openmetrics-text') === true;

/** Takes the mark from the end, and has the last line end. */
async function* withoutMark(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held = '';
  for await (const chunk of source) {
    const text = held + chunk.toString('latin1');
    // As long as a mark can be, with the end of the line before it.
    const cut = Math.max(0, text.length - MARK.length - 2);
    held = text.slice(cut);
    yield Buffer.from(text.slice(0, cut), 'latin1');
  }
  const rest = held.replace(/(^|\n)# EOF\r?\n?$/, '$1');
  yield Buffer.from(rest === '' || rest.endsWith('\n') ? rest : `${rest}\n`, 'latin1');
}

/** Through its port for scrapers, which refuses expensive queries. */
function openEnvoy(
  envoy: { readonly host: string; readonly port: number },
  query: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return open({ ...envoy, path: `/stats/prometheus${query}`, signal });
}

function open(options: {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, agent: false, timeout: TIMEOUT }, (response) => {
      if (response.statusCode === 200) return resolve(response);
      response.destroy();
      reject(new Error(`${options.path}: ${response.statusCode}`));
    });
    sent.on('timeout', () => sent.destroy(new Error(`${options.path}: no answer`)));
    sent.on('error', reject);
    sent.end();
  });
}
