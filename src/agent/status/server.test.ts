import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { readAppProbes } from './app-probes.ts';
import { serveStatus } from './server.ts';

/** More than are served at a time. */
const MANY = 300;

const READY = 'GET /healthz/ready HTTP/1.1\r\nhost: a\r\n\r\n';
const PROBE = 'GET /app-health/a/livez HTTP/1.1\r\nhost: a\r\n\r\n';

/** Its application accepts connections and answers when it is told to. */
async function startStatus() {
  const asked: (() => void)[] = [];
  const app = createServer((_, response) => void asked.push(() => response.end('alive'))).listen(0, '127.0.0.1');
  await once(app, 'listening');
  const { port: appPort } = app.address() as AddressInfo;
  const here = { host: '127.0.0.1', from: undefined };
  const ends = { quits: 0 };
  const scrapes = { open: 0, most: 0, rests: [] as (() => void)[] };
  const envoy = createServer((request, response) => {
    scrapes.most = Math.max(scrapes.most, ++scrapes.open);
    response.once('close', () => scrapes.open--).write(`asked ${request.url}\n`);
    const rest = (): void => void response.end('the rest');
    // As if whoever asked did not read what there is.
    if (request.url?.includes('slow')) scrapes.rests.push(rest);
    else rest();
  }).listen(0, '127.0.0.1');
  await once(envoy, 'listening');
  const metrics = { host: '127.0.0.1', port: (envoy.address() as AddressInfo).port };
  const server = await serveStatus(0, {
    notReady: () => Promise.resolve(undefined),
    probes: readAppProbes(
      JSON.stringify({ '/app-health/a/livez': { httpGet: { port: appPort, path: '/' }, timeoutSeconds: 3_000 } }),
    ),
    app: here,
    metrics: { own: () => '', envoy: metrics, mergesEnvoy: true, app: here, targets: [], failed: () => {} },
    status: () => ({}),
    drain: () => Promise.resolve(),
    quit: () => void ends.quits++,
  });
  onTestFinished(() => {
    for (const each of [app, envoy, server]) {
      each.close();
      each.closeAllConnections();
    }
  });
  const { port } = server.address() as AddressInfo;
  return {
    app,
    asked,
    ends,
    scrapes,
    async ask(line: string, localAddress = '127.0.0.1'): Promise<string> {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      socket.write(`${line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
      return text(socket);
    },
    async open(localAddress = '127.0.0.1'): Promise<Socket> {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
      await once(socket, 'connect');
      return socket;
    },
  };
}

test('connections that ask nothing do not keep the kubelet out', async () => {
  const { open } = await startStatus();
  for (let i = 0; i < MANY; i++) await open();
  const kubelet = await open();
  kubelet.end(READY);
  expect(await text(kubelet)).toMatch(/^HTTP\/1.1 200 /);
});

test('one connection makes one request to the application, however many it has in its pipeline', async () => {
  const { app, asked, open } = await startStatus();
  const client = await open();
  const first = once(app, 'request');
  client.write(PROBE.repeat(MANY));
  await first;
  asked[0]!();
  let answers = '';
  for await (const chunk of client.setEncoding('utf8')) {
    answers += chunk as string;
    if (answers.includes(' 503 ')) break;
  }
  expect(answers).toMatch(/^HTTP\/1.1 200 [^]*alive/);
  expect(asked).toHaveLength(1);
});

test('only who is in this Pod ends it, not who comes through its Envoy, however the path is spelled', async () => {
  const { ask, ends } = await startStatus();
  for (const path of ['/quitquitquit', '/drain'])
    expect(await ask(`POST ${path}`, '127.0.0.6')).toMatch(/^HTTP\/1.1 403 /);
  for (const path of [
    '//quitquitquit',
    '/stats/prometheus/../../quitquitquit',
    '/%71uitquitquit',
    '/quitquitquit/',
    '/x?/quitquitquit',
  ])
    expect(await ask(`POST ${path}`)).toMatch(/^HTTP\/1.1 404 /);
  expect(await ask('GET /quitquitquit')).toMatch(/^HTTP\/1.1 405 /);
  expect(ends.quits).toBe(0);
  expect(await ask('POST /quitquitquit')).toMatch(/^HTTP\/1.1 200 /);
  expect(ends.quits).toBe(1);
});

test('a query goes on to Envoy as it is', async () => {
  const { ask } = await startStatus();
  const query = '?usedonly&filter=a?b&c=/../x';
  expect(await ask(`GET /stats/prometheus${query}`)).toContain(`asked /stats/prometheus${query}`);
});

test.each(['/stats/prometheus', '/stats/envoy'])(
  'whoever reads %s slowly, or never, keeps nobody out',
  async (path) => {
    const { ask, open, scrapes } = await startStatus();
    const begin = async (address: string, forwarded: string): Promise<Socket> => {
      const socket = await open(address);
      socket.write(
        `GET ${path}?slow HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-forwarded-for: ${forwarded}\r\n\r\n`,
      );
      await once(socket, 'readable');
      return socket;
    };
    // Envoy says for whom it asks; others may claim what they like.
    const greedy = async (): Promise<void> => {
      for (let i = 0; i < 10; i++)
        for (const [address, forwarded] of [
          ['127.0.0.2', `10.0.0.${i}`],
          ['127.0.0.1', `10.0.0.${i}, 127.0.0.2`],
        ] as const)
          await begin(address, forwarded);
    };
    await greedy();
    const patient = await begin('127.0.0.3', '');
    await greedy();
    expect(await ask(`GET ${path}`, '127.0.0.4')).toContain('asked /stats/prometheus');
    for (const rest of scrapes.rests) rest();
    expect(await text(patient)).toContain('the rest');
    expect(scrapes.most).toBeLessThan(20);
  },
);
