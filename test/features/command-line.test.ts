import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { status as Status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { createProgram, startServing } from '../../src/app.ts';
import { nodeOfId, withLabels } from '../../src/cli/node-file.ts';
import { readConfig, readMeshSettings } from '../../src/config/config.ts';
import { bundle } from '../../tools/build.ts';
import { entryPoint } from '../chart/image.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { validateBootstrap } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { plainEnvironment, poll, run, startProcess } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { CDS, EDS, LDS, RDS } from './proxy.ts';
import { get } from './program.ts';
import { meshConfig, namespace, virtualService } from './objects.ts';
import { ratings, reviews, rule, split } from './shop.ts';
import { Directory } from './sources.ts';

let directory = '';
let program: readonly string[] = [];

// What the image runs: it starts in half of the time that the sources take.
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-command-line-'));
  await bundle(join(directory, 'dist'));
  program = entryPoint(directory).slice(1);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const env = plainEnvironment();

function fairlead(...args: readonly string[]) {
  return run(process.execPath, [...program, ...args], { env });
}

const documents = (...objects: readonly unknown[]): string => objects.map((each) => stringify(each)).join('---\n');

async function shop(routes: string): Promise<Directory> {
  const directory = await Directory.create();
  await directory.write('shop.yaml', documents(...reviews, ...ratings, rule));
  await directory.write('routes.yaml', routes);
  return directory;
}

const astray = virtualService('ratings', {
  hosts: ['ratings'],
  http: [{ route: [{ destination: { host: 'elsewhere' } }] }],
});
const wrong = virtualService('reviews', { hosts: ['reviews'], http: [{ timeout: 'soon' }] });

/** Line of the first part of the text. */
const lineOf = (text: string, part: string): number => text.slice(0, text.indexOf(part)).split('\n').length;

describe('check', () => {
  test('has nothing to say of what is right', async () => {
    const { path } = await shop(documents(split(80, 20)));
    expect(await fairlead('check', path)).toEqual({ code: 0, stdout: '', stderr: '8 objects: 0 errors, 0 warnings\n' });
  });

  test('warns of what has no effect, supported or not, also where the files are all there is', async () => {
    const { path } = await shop(
      documents(
        virtualService('ratings', {
          hosts: ['ratings'],
          http: [
            {
              fault: { abort: { http2Error: 'REFUSED_STREAM' } },
              headers: { request: { set: { ':path': '/' } } },
              route: [{ destination: { host: 'ratings' } }],
            },
          ],
        }),
      ),
    );
    const { code, stdout, stderr } = await fairlead('check', '--complete', path);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '8 objects: 0 errors, 2 warnings\n' });
    expect(stdout).toMatch(/http2Error.*: warning: The field is not supported yet/);
    expect(stdout).toMatch(/:path.*: warning: ":path" cannot be changed and is ignored/);
  });

  test('warns of objects in namespaces that are not selected', async () => {
    const { path } = await shop(
      documents(
        namespace('shop', { labels: { mesh: 'out' } }),
        meshConfig('discoverySelectors: [{ matchLabels: { mesh: "in" } }]'),
        split(80, 20),
      ),
    );
    const { code, stdout } = await fairlead('check', path);
    expect(code).toBe(0);
    expect(stdout.match(/^.*: warning: has no effect: discoverySelectors .* namespace shop\..*$/gm)).toHaveLength(2);
  });

  test('names file, line, object and field; what leads outside is a warning unless the files are all there is', async () => {
    const text = documents(astray);
    const { path } = await shop(text);
    const place = `${join(path, 'routes.yaml')}:${lineOf(text, 'host: elsewhere')}: VirtualService/shop/ratings: spec.http[0].route[0].destination.host: `;
    const [open, complete] = await Promise.all([fairlead('check', path), fairlead('check', '--complete', path)]);
    expect(open).toMatchObject({ code: 0, stderr: '8 objects: 0 errors, 1 warning\n' });
    expect(open.stdout).toMatch(/^.*: warning: .*"elsewhere\.shop\.svc\.cluster\.local".*\n$/);
    expect(open.stdout).toContain(`${place}warning: `);
    expect(complete).toMatchObject({ code: 1, stderr: '8 objects: 1 error, 0 warnings\n' });
    expect(complete.stdout).toBe(open.stdout.replace('warning: ', ''));
  });

  test('keeps to the order of a list that stands in one line', async () => {
    const directory = await Directory.create();
    const http = Array.from({ length: 12 }, (_, i) => ({
      match: [{ uri: { prefix: `/${i}/` } }],
      route: [{ destination: { host: 'elsewhere' } }],
    }));
    await directory.write('routes.json', JSON.stringify(virtualService('ratings', { hosts: ['ratings'], http })));
    const mesh = readMeshSettings({ flags: {}, env: {} });
    const { findings } = await createProgram().check({ paths: [directory.path], complete: false, mesh });
    expect(findings.map(({ field }) => field)).toEqual(http.map((_, i) => `spec.http[${i}].route[0].destination.host`));
  });

  test('ends with 1 for a mistake, also beside broken YAML, and tells programs in JSON', async () => {
    const text = `${documents(wrong)}---\nkind: [\n`;
    const { path } = await shop(text);
    const [plain, json] = await Promise.all([fairlead('check', path), fairlead('check', path, '-o', 'json')]);
    const file = join(path, 'routes.yaml');
    const [field, yaml] = plain.stdout.trimEnd().split('\n');
    expect(field).toMatch(
      `${file}:${lineOf(text, 'timeout: soon')}: VirtualService/shop/reviews: spec.http[0].timeout: `,
    );
    expect(yaml).toMatch(new RegExp(`^${file}:${lineOf(text, 'kind: [')}: is not valid YAML`));
    expect(plain).toMatchObject({ code: 1, stderr: '8 objects: 2 errors, 0 warnings\n' });
    expect(json).toMatchObject({ code: 1, stderr: '' });
    expect(JSON.parse(json.stdout)).toMatchObject({
      errors: 2,
      warnings: 0,
      findings: [
        { severity: 'error', file, kind: 'VirtualService', name: 'reviews', field: 'spec.http[0].timeout' },
        { severity: 'error', file, field: '', reason: 'Unreadable' },
      ],
    });
  });
});

test.each([
  [1, wrong],
  [0, astray],
])('check ends with the same code (%i) when nobody reads what it says', async (code, object) => {
  const { path } = await shop(documents(object));
  const child = spawn(process.execPath, [...program, 'check', path], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.destroy();
  expect(await once(child, 'exit')).toEqual([code, null]);
});

describe('translate', () => {
  const id = 'sidecar~10.0.0.1~client.shop~shop.svc.cluster.local';
  const name = 'outbound|80|v1|reviews.shop.svc.cluster.local';

  test('prints one document of all types, or what is asked for of it', async () => {
    const { path } = await shop(documents(split(80, 20)));
    const [all, one] = await Promise.all([
      fairlead('translate', path, '--proxy', id),
      fairlead('translate', path, '--proxy', id, '--type', 'eds', '--name', name, '-o', 'json'),
    ]);
    expect(all).toMatchObject({ code: 0, stderr: '' });
    const document = parse(all.stdout) as Document;
    expect(Object.keys(document)).toEqual(['cds', 'eds', 'lds', 'rds', 'sds']);
    const found = new Set(Object.values(document).flatMap((list) => list.map((each) => each['@type'])));
    expect([...found]).toEqual([CDS, EDS, LDS, RDS]);
    expect(document.rds.map((table) => table['name'])).toEqual(['80']);
    expect(JSON.parse(one.stdout)).toEqual({ eds: document.eds.filter((each) => each['clusterName'] === name) });
    expect(JSON.parse(one.stdout)).toHaveProperty('eds.0');
  });

  const inProcess = (path: string, node: Parameters<typeof nodeOfId>[0], labels?: string) => {
    const proxy = labels === undefined ? nodeOfId(node) : withLabels(nodeOfId(node), labels);
    return createProgram().translate({ paths: [path], proxy, mesh: readMeshSettings({ flags: {}, env: {} }) });
  };

  test('prints what a server would serve beside objects with errors, and ends with 1 only where it is strict', async () => {
    const { path } = await shop(`${documents(wrong, split(80, 20))}---\nkind: [\n`);
    const [plain, strict] = await Promise.all([
      fairlead('translate', path, '--proxy', id),
      fairlead('translate', path, '--proxy', id, '--strict'),
    ]);
    expect([plain.code, strict.code]).toEqual([0, 1]);
    expect(strict.stdout).toBe(plain.stdout);
    expect(plain.stderr).toMatch(/spec\.http\[0\]\.timeout.*\n.*is not valid YAML/);
    expect((parse(plain.stdout) as Document).rds.map((table) => table['name'])).toEqual(['80']);
  });

  test('says why a router is given nothing', async () => {
    const router = 'router~10.0.0.1~gateway.bookshop~bookshop.svc.cluster.local';
    const unlabelled = await inProcess('examples/bookshop', router);
    expect(unlabelled.remark).toBe(
      'no Gateway selects the labels of the proxy: it has none, and Gateways select istio=ingressgateway. ' +
        'Give the labels with --labels istio=ingressgateway, or the node with --node FILE',
    );
    expect((await inProcess('examples/bookshop', router, 'app=x')).remark).toContain('it has app=x, and Gateways');
    const labelled = await inProcess('examples/bookshop', router, 'istio=ingressgateway');
    expect(labelled.remark).toBeUndefined();
    expect(labelled.resources.lds).not.toEqual([]);
    const { path } = await shop(documents(split(80, 20)));
    expect((await inProcess(path, router)).remark).toContain('the files contain none');
    expect((await inProcess(path, id)).remark).toBeUndefined();
    expect((await inProcess(path, 'router~10.0.0.1~x')).refusal).toContain('missing parts in the service node');
  });

  test('ends with 1 when the name is not there', async () => {
    const { path } = await shop(documents(wrong));
    const [mistake, nobody] = await Promise.all([
      fairlead('translate', path, '--proxy', id, '--name', 'nowhere'),
      fairlead('translate', path),
    ]);
    const [field, absent] = mistake.stderr.trimEnd().split('\n');
    expect(field).toContain('VirtualService/shop/reviews: spec.http[0].timeout: ');
    expect(absent).toBe('the proxy gets no resource named nowhere');
    expect(mistake.code).toBe(1);
    expect(parse(mistake.stdout)).toEqual({ cds: [], eds: [], lds: [], rds: [], sds: [] });
    expect(nobody).toEqual({ code: 1, stdout: '', stderr: 'error: specify --proxy ID or --node FILE\n' });
  });

  withPeers(['envoy'], 'for a real Envoy', () => {
    test.each([
      ['sidecar', { INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: '15080' }],
      ['router', { LABELS: { istio: 'ingressgateway' } }],
    ])('prints what that loads, as a %s of the bookshop', async (type, metadata) => {
      const directory = await Directory.create();
      const node = { id: `${type}~10.0.0.1~client.bookshop~bookshop.svc.cluster.local`, metadata };
      await directory.write('node.json', JSON.stringify(node));
      const args = ['examples/bookshop', '--node', join(directory.path, 'node.json'), '-o', 'json'];
      const { stdout, stderr } = await fairlead('translate', ...args);
      expect(stderr).toBe('');
      const document = JSON.parse(stdout) as Document;
      expect(document.rds).not.toEqual([]);
      expect(await validateBootstrap({ node, staticResources: staticOf(document) })).toEqual({ ok: true });
    });
  });
});

type Resource = Readonly<Record<string, unknown>>;
type Document = Readonly<Record<'cds' | 'eds' | 'lds' | 'rds' | 'sds', readonly Resource[]>>;

/** The same without a control plane: assignments in their clusters, tables in their listeners. */
function staticOf({ cds, eds, lds, rds }: Document) {
  const plain = ({ '@type': _, ...rest }: Resource): Resource => rest;
  const clusters = cds.map((cluster) => {
    if (cluster['type'] !== 'EDS') return plain(cluster);
    const { edsClusterConfig: _, ...rest } = plain(cluster);
    const loadAssignment = eds.find((each) => each['clusterName'] === cluster['name']);
    return { ...rest, type: 'STATIC', loadAssignment: plain(loadAssignment!) };
  });
  const listeners = JSON.parse(JSON.stringify(lds.map(plain)), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('rds' in value)) return value;
    const { rds: named, ...manager } = value as { readonly rds: { readonly routeConfigName: string } };
    return { ...manager, routeConfig: plain(rds.find((table) => table['name'] === named.routeConfigName)!) };
  }) as Resource[];
  return { clusters, listeners };
}

describe('serve', () => {
  const serve = (...args: readonly string[]) => fairlead('serve', ...args);
  const anywhere = ['--grpc-address', '--health-address', '--monitoring-address'];
  const addresses = (taken = '', port = 0): string[] =>
    anywhere.flatMap((flag) => [flag, `127.0.0.1:${flag === taken ? port : 0}`]);

  test('a port in use is one line', async () => {
    const { path } = await Directory.create();
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const outcomes = await Promise.all(
      anywhere.map((flag) => serve('--directory', path, '--log-level', 'error', ...addresses(flag, port))),
    );
    const line = (what: string) => `error: ${what}: cannot listen on 127.0.0.1:${port}: the port is in use\n`;
    expect(outcomes).toEqual(
      ['gRPC', 'health', 'monitoring'].map((what) => ({ code: 1, stdout: '', stderr: line(what) })),
    );
  });

  test('a wrong flag, a kubeconfig that cannot be read and a directory that is not there are one line each', async () => {
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [['--grpc-adress', ':1'], /^error: unknown option '--grpc-adress'.*\n$/],
      [['--grpc-address', 'here'], /^error: --grpc-address: "here" must be host:port, :port or off\n$/],
      [['--kubeconfig', '/missing/config', ...addresses()], /^error: kubeconfig \/missing\/config: .*\n$/],
      [['--kubeconfig', import.meta.filename, ...addresses()], /^error: kubeconfig .*command-line\.test\.ts: .*\n$/],
      [['--directory', '/missing/files', ...addresses()], /^error: \/missing\/files: no such file or directory\n$/],
    ];
    const outcomes = await Promise.all(cases.map(([args]) => serve(...args)));
    for (const [i, [, line]] of cases.entries()) {
      expect(outcomes[i]?.stderr).toMatch(line);
      expect(outcomes[i]).toMatchObject({ code: 1, stdout: '' });
    }
  });

  test('ends with nothing left open when it is told to while it starts', async () => {
    const { path } = await shop(documents(split(80, 20)));
    for (const turns of [0, 1, 2, 3, 5, 8, 13, 21]) {
      const ports = await freePorts(3);
      const [grpcAddress, healthAddress, monitoringAddress] = ports.map((port) => `127.0.0.1:${port}`);
      const addresses = { grpcAddress, healthAddress, monitoringAddress } as Record<string, string>;
      const config = readConfig({ flags: { directory: [path], logLevel: 'error', ...addresses }, env: {} });
      const stop = new AbortController();
      const serving = createProgram().serve(config, stop.signal);
      for (let turn = 0; turn < turns; turn++) await setImmediate();
      stop.abort();
      await serving;
      for (const port of ports) {
        const server = createServer();
        await new Promise<void>((done, failed) => server.once('error', failed).listen(port, '127.0.0.1', done));
        server.close();
      }
    }
  });

  const loopback = ['127.0.0.1', '::1'].filter((address) =>
    Object.values(networkInterfaces()).some((all) => all?.some((each) => each.address === address)),
  );

  test.each([...loopback, ''])('takes connections where it is told to: "%s"', async (host) => {
    const { path } = await Directory.create();
    const address = host.includes(':') ? `[${host}]:0` : `${host}:0`;
    const addresses = {
      grpcAddress: address,
      secureGrpcAddress: address,
      healthAddress: address,
      monitoringAddress: address,
    };
    const config = readConfig({ flags: { directory: [path], logLevel: 'error', ...addresses }, env: {} });
    const stop = new AbortController();
    const serving = await startServing(config, stop.signal);
    for (const port of Object.values(serving.ports))
      for (const each of host === '' ? loopback : [host]) {
        const socket = connect(port, each);
        await once(socket, 'connect');
        socket.destroy();
      }
    stop.abort();
    await serving.ended;
  });

  test('is ready, and ends with 0 when it is told to', async () => {
    const { path } = await shop(documents(split(80, 20)));
    const [grpc, health = 0, monitoring] = await freePorts(3);
    const ports = [grpc, health, monitoring].flatMap((port, i) => [anywhere[i]!, `127.0.0.1:${port}`]);
    const running = startProcess(process.execPath, [...program, 'serve', '--directory', path, ...ports], { env });
    onTestFinished(() => running.stop());
    await poll('readiness', () => get(health, '/ready').then(isReady, () => undefined), { process: running });
    expect(await get(health, '/ready')).toEqual({ status: 200, body: 'ready\n' });
    process.kill(running.pid, 'SIGTERM');
    expect(await running.exited).toBe(0);
  });

  test.each([
    [
      'ends with 0 when it is told to end and waits for what never comes',
      0,
      '',
      'process.kill(process.pid, "SIGTERM")',
    ],
    [
      'says so when it waits for what never comes',
      1,
      'error: the command waits for something that cannot happen any more\n',
      '',
    ],
  ])('%s', async (_, code, said, first) => {
    const script = `
      import { runProcess } from ${JSON.stringify(new URL('../../src/cli/process.ts', import.meta.url))};
      await runProcess((_, { signal }) => {
        ${first};
        const alive = setInterval(() => ${first === '' ? 'clearInterval(alive)' : 'signal.aborted && clearInterval(alive)'});
        return new Promise(() => {});
      });`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const err: Buffer[] = [];
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    const [exit] = (await once(child, 'close')) as [number | null];
    expect([exit, Buffer.concat(err).toString()]).toEqual([code, said]);
  });

  /** Says when it ends what would have kept the process: after five seconds it ends all the same. */
  const witness = `process.on('exit', () => console.log('kept by ' + JSON.stringify(process.getActiveResourcesInfo()
    .filter((kind) => !/^(TTY|Pipe)Wrap$/.test(kind)))))`;

  test.each([
    ['nobody is there', 0, '10s'],
    ['proxies are connected', 3, '0s'],
  ])('nothing keeps the process that is told to end while %s', async (_, count, shutdown) => {
    const { path } = await shop(documents(split(80, 20)));
    const [grpc = 0, health = 0, monitoring] = await freePorts(3);
    const ports = [grpc, health, monitoring].flatMap((port, i) => [anywhere[i]!, `127.0.0.1:${port}`]);
    const args = ['serve', '--directory', path, '--shutdown-duration', shutdown, ...ports];
    const imported = `data:text/javascript,${encodeURIComponent(witness)}`;
    const running = startProcess(process.execPath, ['--import', imported, ...program, ...args], { env });
    onTestFinished(() => running.stop());
    await poll('readiness', () => get(health, '/ready').then(isReady, () => undefined), { process: running });
    const clients = Array.from({ length: count }, (_, i) => connected(grpc, `proxy-${i}`));
    for (const client of clients) await client.next(CDS);
    process.kill(running.pid, 'SIGTERM');
    expect(await running.exited).toBe(0);
    expect(running.log()).toContain('kept by []');
  });

  test('is not ready any more before the first stream ends, takes no more, and ends a second signal at once', async () => {
    const { path } = await shop(documents(split(80, 20)));
    const [grpc = 0, health = 0, monitoring] = await freePorts(3);
    const ports = [grpc, health, monitoring].flatMap((port, i) => [anywhere[i]!, `127.0.0.1:${port}`]);
    const args = ['serve', '--directory', path, '--shutdown-duration', '1h', ...ports];
    const running = startProcess(process.execPath, [...program, ...args], { env });
    onTestFinished(() => running.stop());
    await poll('readiness', () => get(health, '/ready').then(isReady, () => undefined), { process: running });
    let ended = 0;
    for (const id of ['proxy-1', 'proxy-2']) {
      const client = connected(grpc, id);
      await client.next(CDS);
      void client.closed.then(() => ended++);
    }
    process.kill(running.pid, 'SIGTERM');
    const answer = await poll('the end', async () => {
      const { status, body } = await get(health, '/ready');
      return status === 200 ? undefined : { status, body };
    });
    expect(answer).toEqual({ status: 503, body: 'not ready, waiting for shutdown\n' });
    expect(await connected(grpc, 'late').closed).toMatchObject({
      code: Status.UNAVAILABLE,
      details: 'the server is shutting down',
    });
    expect(await get(health, '/healthz')).toMatchObject({ status: 200 });
    expect(ended).toBe(0);
    process.kill(running.pid, 'SIGTERM');
    expect(await running.exited).toBe('SIGTERM');
  });

  const isReady = ({ status }: { readonly status: number }): true | undefined => status === 200 || undefined;

  function connected(port: number, id: string): XdsClient {
    const client = new XdsClient(port, true);
    onTestFinished(() => client.close());
    client.send({ typeUrl: CDS, node: { id: `sidecar~10.0.0.1~${id}.shop~shop.svc.cluster.local` } });
    return client;
  }
});
