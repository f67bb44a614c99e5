import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type MetricsSources, writeMetrics } from './metrics.ts';
import { readScrapeTargets } from './scrape-targets.ts';

async function startSource(type: string, answer: (url: string) => string | undefined): Promise<number> {
  const server = createServer((request, response) => {
    const body = answer(`${request.url} ${request.headers.accept ?? ''}`);
    if (body === undefined) response.writeHead(500).end();
    else response.writeHead(200, { 'content-type': type }).end(body);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function scrape(envoy: number, apps: readonly number[], query = '', failed: string[] = []) {
  const sources: MetricsSources = {
    own: () => 'own 1\n',
    envoy: { host: '127.0.0.1', port: envoy },
    mergesEnvoy: true,
    app: { host: '127.0.0.1', from: undefined },
    targets: apps.map((port) => ({ port, path: '/metrics' })),
    failed: (source) => void failed.push(source),
  };
  const server = createServer(
    (request, response) => void writeMetrics(sources, query, request, response, new AbortController().signal),
  ).listen(0);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
    headers: { accept: 'application/openmetrics-text' },
  });
  return { type: response.headers.get('content-type'), body: await response.text(), failed };
}

test('the metrics of the agent, Envoy and the application are one text; the end mark of OpenMetrics stays last', async () => {
  const envoy = await startSource('text/plain', (asked) => `envoy ${asked.split(' ')[0]}\n`);
  const app = await startSource('application/openmetrics-text; version=1.0.0', (asked) => `app ${asked}\n# EOF\n`);
  expect(await scrape(envoy, [app], '?usedonly')).toEqual({
    type: 'application/openmetrics-text; version=1.0.0',
    body: 'own 1\nenvoy /stats/prometheus?usedonly\napp /metrics application/openmetrics-text\n# EOF\n',
    failed: [],
  });
});

test('one that fails is counted, and costs the others nothing', async () => {
  const broken = await startSource('text/plain', () => undefined);
  const works = await startSource('text/plain', () => 'x 1\n');
  expect(await scrape(broken, [works])).toMatchObject({ body: 'own 1\nx 1\n', failed: ['envoy'] });
  expect(await scrape(works, [broken])).toMatchObject({ body: 'own 1\nx 1\n', failed: ['app'] });
  expect(await scrape(works, [])).toMatchObject({ body: 'own 1\nx 1\n', failed: [] });
});

test('several applications are asked at once and written in order, with one end mark', async () => {
  const openMetrics = 'application/openmetrics-text; version=1.0.0';
  const envoy = await startSource('text/plain', () => 'envoy 1\n');
  const large = 'x'.repeat(300_000);
  const [first, second, plain, broken] = await Promise.all([
    startSource(openMetrics, () => `a{b="${large}"} 1\n# EOF\n`),
    startSource(openMetrics, () => 'é 2\n# EOF'),
    startSource('text/plain', () => 'c 3'),
    startSource('text/plain', () => undefined),
  ]);
  expect(await scrape(envoy, [first, broken, second])).toEqual({
    type: openMetrics,
    body: `own 1\nenvoy 1\na{b="${large}"} 1\né 2\n# EOF\n`,
    failed: ['app'],
  });
  expect(await scrape(envoy, [second, plain])).toEqual({
    type: 'text/plain; version=0.0.4; charset=utf-8',
    body: 'own 1\nenvoy 1\né 2\nc 3\n',
    failed: [],
  });
});

test('many applications are scraped without a warning of Node', async () => {
  const warnings: string[] = [];
  const warn = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', warn);
  onTestFinished(() => void process.off('warning', warn));
  const source = await startSource('text/plain', () => 'x 1\n');
  expect(await scrape(source, Array(20).fill(source))).toMatchObject({
    body: `own 1\n${'x 1\n'.repeat(21)}`,
    failed: [],
  });
  expect(warnings).toEqual([]);
});

test('an answer that breaks off is counted, and what is written of it is not ended', async () => {
  const breaks = createNetServer((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx 1\n')),
  ).listen(0, '127.0.0.1');
  onTestFinished(() => void breaks.close());
  await once(breaks, 'listening');
  const works = await startSource('text/plain', () => 'x 1\n');
  const failed: string[] = [];
  await expect(scrape(works, [works, (breaks.address() as AddressInfo).port], '', failed)).rejects.toThrow();
  expect(failed).toEqual(['app']);
});

test('a target is what the annotations say, unless it is a port of the proxy', () => {
  expect(readScrapeTargets('{"scrape":"true","port":"9080","path":"stats"}')).toEqual([{ port: 9080, path: '/stats' }]);
  expect(readScrapeTargets('{"scrape":"true"}')).toEqual([{ port: 80, path: '/metrics' }]);
  expect(
    readScrapeTargets(
      '{"scrape":"true","targets":[{"port":"81","path":"/a"},{"port":"15090"},{"port":82}, 5],"port":"9080"}',
    ),
  ).toEqual([
    { port: 81, path: '/a' },
    { port: 82, path: '/metrics' },
  ]);
  for (const text of ['', '{}', '{"scrape":"false"}', '{"scrape":"true","port":"15020"}'])
    expect(readScrapeTargets(text)).toEqual([]);
  // It would scrape itself without end.
  expect(readScrapeTargets('{"scrape":"true","port":"25020"}', [25_020])).toEqual([]);
  expect(() => readScrapeTargets('[')).toThrow(/ISTIO_PROMETHEUS_ANNOTATIONS/);
  expect(() => readScrapeTargets(JSON.stringify({ scrape: 'true', targets: Array(21).fill({ port: '81' }) }))).toThrow(
    /more than 20/,
  );
});
