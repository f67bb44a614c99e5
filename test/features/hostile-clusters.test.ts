import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { createAuthority } from '../peers/keys.ts';
import { service, slice } from './objects.ts';
import { get, Program } from './program.ts';
import type { Proxy } from './proxy.ts';
import { kubeconfigFor, remoteSecret } from './remote-secret.ts';
import { clusterOf } from './shop.ts';
import { Cluster, SECRETS } from './sources.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** An API server of another cluster that answers so. */
const hostile = async (answer: Answer): Promise<string> => `http://127.0.0.1:${await listen(createServer(answer))}`;

const list = (more: Json, ...items: readonly object[]): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '1', ...more }, items });

const isWatch = ({ url = '' }: IncomingMessage): boolean => url.includes('watch=1');

/** One cluster of ours, and one that is given by its kubeconfig. */
async function start(kubeconfig: string): Promise<{ program: Program; proxy: Proxy; own: Cluster }> {
  const own = await Cluster.create();
  await own.apply(service('ratings', '10.96.0.2'), slice('ratings', ['10.1.0.1']));
  own.server.cluster.apply(SECRETS, remoteSecret({ east: kubeconfig }));
  const settings = { kubeconfig: own.kubeconfig, insecureRemoteClusters: 'allow' };
  const program = await Program.start(settings, { heapBytes: 64 * 1024 * 1024 });
  await expect.poll(async () => (await get(program.serving.ports.health, '/ready')).body).toContain('cluster east');
  // Nobody waits for it for longer.
  program.clock.skip(31_000);
  const proxy = await program.connect(true);
  return { program, proxy, own };
}

async function expectUnharmed({ program, proxy, own }: Awaited<ReturnType<typeof start>>): Promise<void> {
  const endpoints = (): unknown => proxy.endpoints()[clusterOf('ratings')];
  expect(endpoints()).toEqual(['10.1.0.1:8080']);
  await own.apply(slice('ratings', ['10.1.0.1', '10.1.0.2']));
  await program.sent(proxy, () => expect(endpoints()).toEqual(['10.1.0.1:8080', '10.1.0.2:8080']));
}

async function reportOf({ serving }: Program): Promise<Json> {
  const reports = JSON.parse((await get(serving.ports.health, '/debug/clusterz')).body) as Json[];
  return reports.find(({ id }) => id === 'east')!;
}

const reasonOf = async (program: Program): Promise<unknown> =>
  ((await reportOf(program))['trouble'] as Json | undefined)?.['reason'];

test('a list that never ends gets no further than its budget', async () => {
  let page = 0;
  const url = await hostile((_, response) => {
    page++;
    const items = Array.from({ length: 400 }, (__, i) => ({
      metadata: { name: `n-${page}-${i}`, namespace: 'shop', labels: { app: 'a' } },
      spec: {},
      addressType: 'IPv4',
    }));
    response.end(list({ continue: `${page}` }, ...items));
  });
  const made = await start(kubeconfigFor(url));
  await expectUnharmed(made);
  await expect
    .poll(() => reasonOf(made.program))
    .toMatch(/OverBudget \(what was known stays; give Fairlead more memory\)/);
  const { memory, phase } = await reportOf(made.program);
  expect(phase).toBe('timed out');
  const { used, most } = memory as { readonly used: number; readonly most: number };
  expect(used).toBeLessThanOrEqual(most);
});

test('a response that never ends is not read to its end', async () => {
  const url = await hostile((_, response) => {
    const chunk = Buffer.alloc(1 << 20, 'a');
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more);
    response.write('{"items":["');
    more();
  });
  const made = await start(kubeconfigFor(url));
  await expectUnharmed(made);
  await expect.poll(() => reasonOf(made.program)).toMatch(/AnswerTooLarge/);
});

test('a server that takes requests and does not answer, or not to the end, is being read', async () => {
  const url = await hostile((request, response) => {
    if (request.url?.includes('pods') === true) response.write('{"items": [');
  });
  const made = await start(kubeconfigFor(url));
  await expectUnharmed(made);
  expect(await reasonOf(made.program)).toMatch(/Pod.*: being read/);
});

test('the certificate of another authority is refused, and that is said', async () => {
  const [trusted, other] = [await createAuthority(), await createAuthority()];
  const { certificate: cert, key } = await other.server(['127.0.0.1']);
  const port = await listen(createTlsServer({ cert, key }, (_, response) => void response.end(list({}))));
  const kubeconfig = JSON.parse(kubeconfigFor(`https://127.0.0.1:${port}`)) as {
    readonly clusters: [{ readonly cluster: Json }];
  };
  kubeconfig.clusters[0].cluster['certificate-authority-data'] = Buffer.from(trusted.certificate).toString('base64');
  const made = await start(JSON.stringify(kubeconfig));
  await expectUnharmed(made);
  await expect.poll(() => reasonOf(made.program)).toMatch(/not one that the kubeconfig trusts/);
});

test('objects that no API server would store are skipped and counted; the others are served', async () => {
  const metadata = (name: string): Json => ({
    namespace: 'shop',
    name,
    labels: { 'kubernetes.io/service-name': 'ratings' },
  });
  const of = (name: string, address: string): object => ({
    metadata: metadata(name),
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: [address] }],
  });
  const odd = [
    of('a/b', '10.2.0.1'),
    of('', '10.2.0.2'),
    { ...of('c', '10.2.0.3'), ports: [{ port: 'x' }] },
    'text',
    null,
  ];
  const url = await hostile((request, response) => {
    if (isWatch(request)) return void response.flushHeaders();
    const isSlices = request.url?.includes('endpointslices') === true;
    response.end(list({}, ...((isSlices ? [...odd, of('good', '10.2.0.9')] : []) as object[])));
  });
  const own = await Cluster.create();
  await own.apply(service('ratings', '10.96.0.2'), slice('ratings', ['10.1.0.1']));
  own.server.cluster.apply(SECRETS, remoteSecret({ east: kubeconfigFor(url) }));
  const program = await own.start({ insecureRemoteClusters: 'allow' });
  const proxy = await program.connect(true);
  expect(proxy.endpoints()[clusterOf('ratings')]).toEqual(['10.1.0.1:8080', '10.2.0.9:8080']);
  expect(await reportOf(program)).toMatchObject({ phase: 'synced', unreadable: odd.length });
  expect(program.serving.engine.mesh.graph.failures.size).toBe(0);
});

test('100 Secrets that change at once change all their clusters', async () => {
  const own = await Cluster.create();
  const secretOf = (i: number, text: string) => {
    const made = remoteSecret({ [`c${i}`]: text });
    return { ...made, metadata: { ...made.metadata, name: `remote-${i}` } };
  };
  const all = Array.from({ length: 100 }, (_, i) => i);
  for (const i of all) own.server.cluster.apply(SECRETS, secretOf(i, kubeconfigFor('http://127.0.0.1:1')));
  const program = await own.start({ insecureRemoteClusters: 'allow' });
  const url = await hostile((request, response) => {
    if (isWatch(request)) response.flushHeaders();
    else response.end(list({}));
  });
  // The end of a long one is read after the beginning of others.
  const long = kubeconfigFor(url).replace('{', `{"extensions": [${'{"name": "x"},'.repeat(9_000)}{}],`);
  for (const i of all) own.server.cluster.apply(SECRETS, secretOf(i, i % 10 === 0 ? long : kubeconfigFor(url)));
  const phases = async (): Promise<unknown[]> => {
    const reports = JSON.parse((await get(program.serving.ports.health, '/debug/clusterz')).body) as Json[];
    return reports.flatMap(({ id, phase }) => (id === 'Kubernetes' || phase === 'closing' ? [] : [phase]));
  };
  await expect.poll(phases, { timeout: 25_000 }).toEqual(all.map(() => 'synced'));
});
