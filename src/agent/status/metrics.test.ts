import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type MetricsSources, readScrapeTarget, writeMetrics } from './metrics.ts';

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

async function scrape(envoy: number, app: number | undefined, query = '') {
  const failed: string[] = [];
  const sources: MetricsSources = {
    own: () => 'own 1\n',
    envoy: { host: '127.0.0.1', port: envoy },
    app: app === undefined ? undefined : { host: '127.0.0.1', port: app, path: '/metrics', from: undefined },
    failed: (source) => void failed.push(source),
  };
  const server = createServer((request, response) => void writeMetrics(sources, query, request, response)).listen(0);
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
  expect(await scrape(envoy, app, '?usedonly')).toEqual({
    type: 'application/openmetrics-text; version=1.0.0',
    body: 'own 1\nenvoy /stats/prometheus?usedonly\napp /metrics application/openmetrics-text\n# EOF\n',
    failed: [],
  });
});

test('one that fails is counted, and costs the others nothing', async () => {
  const broken = await startSource('text/plain', () => undefined);
  const works = await startSource('text/plain', () => 'x 1\n');
  expect(await scrape(broken, works)).toMatchObject({ body: 'own 1\nx 1\n', failed: ['envoy'] });
  expect(await scrape(works, broken)).toMatchObject({ body: 'own 1\nx 1\n', failed: ['app'] });
  expect(await scrape(works, undefined)).toMatchObject({ body: 'own 1\nx 1\n', failed: [] });
});

test('a target is what the annotations say, unless it is a port of the proxy', () => {
  expect(readScrapeTarget('{"scrape":"true","port":"9080","path":"stats"}')).toEqual({ port: 9080, path: '/stats' });
  expect(readScrapeTarget('{"scrape":"true"}')).toEqual({ port: 80, path: '/metrics' });
  for (const text of ['', '{}', '{"scrape":"false"}', '{"scrape":"true","port":"15020"}'])
    expect(readScrapeTarget(text)).toBe(undefined);
  expect(() => readScrapeTarget('[')).toThrow(/ISTIO_PROMETHEUS_ANNOTATIONS/);
});
