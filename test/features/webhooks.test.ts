import { once } from 'node:events';
import { cp, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { meshConfig } from './objects.ts';
import { get, type Program } from './program.ts';
import { SERVER, secureCluster } from './secure-cluster.ts';
import { type Cluster, SECRETS } from './sources.ts';

const TEMPLATES = join(import.meta.dirname, '../../charts/fairlead/files/injection');
const MUTATING = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const VALIDATING = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const SECOND = 1_000;

/** A program that is asked about Pods and objects, in a cluster that knows how to ask. */
async function start(settings: Readonly<Record<string, string>> = {}) {
  const made = await secureCluster();
  const { cluster } = made.server;
  cluster.install(MUTATING, 'MutatingWebhookConfiguration').install(VALIDATING, 'ValidatingWebhookConfiguration');
  for (const path of [MUTATING, VALIDATING])
    cluster.apply(path, { metadata: { name: 'ours' }, webhooks: [{ name: 'w' }] });
  await made.apply({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'shop', labels: { 'istio-injection': 'enabled' } },
  });
  const directory = await temporaryDirectory();
  await cp(TEMPLATES, directory, { recursive: true });
  const proxy = { image: 'fairlead-proxy:1', discoveryAddress: `${SERVER}:15012` };
  await writeFile(join(directory, 'config.yaml'), JSON.stringify({ proxy }));
  const program = await made.start({
    ...{
      webhookAddress: '127.0.0.1:0',
      injectionDirectory: directory,
      injectionWebhook: 'ours',
      validationWebhook: 'ours',
    },
    ...settings,
  });
  await program.logged('Ready');
  await expect.poll(() => bundleOf(made, MUTATING)).not.toBe('');
  return { made, program, directory };
}

function bundleOf({ server }: Cluster, path: string): string {
  const found = server.cluster.object(path, '', 'ours') as { webhooks: { clientConfig?: { caBundle?: string } }[] };
  return Buffer.from(found.webhooks[0]?.clientConfig?.caBundle ?? '', 'base64').toString();
}

interface Response {
  readonly allowed: boolean;
  readonly status?: { readonly message: string };
  readonly patch?: string;
}

/** What the program says to the API server, which trusts these roots. */
async function ask(program: Program, ca: string, path: string, kind: string, object: object): Promise<Response> {
  const { text } = await send(program, ca, path, kind, JSON.stringify(object));
  return (JSON.parse(text) as { response: Response }).response;
}

/** @param object JSON. */
async function send(program: Program, ca: string, path: string, kind: string, object: string) {
  const about = JSON.stringify({
    uid: 'u',
    operation: 'CREATE',
    kind: { group: '', kind },
    resource: {},
    namespace: 'shop',
  });
  const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":${about.slice(0, -1)},"object":${object}}}`;
  const sent = request({
    ...{ host: '127.0.0.1', port: program.serving.ports.webhooks!, servername: SERVER, ca, path, method: 'POST' },
    headers: { 'content-type': 'application/json' },
  });
  sent.end(review);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const text = (await response.toArray()).join('');
  return { status: response.statusCode, text };
}

const pod = (annotations: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { generateName: 'web-', annotations },
  spec: { containers: [{ name: 'app', image: 'app' }] },
});

const gateway = (port: number): object => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'Gateway',
  metadata: { name: 'edge', namespace: 'shop' },
  spec: { servers: [{ hosts: ['*'], port: { number: port, name: 'http', protocol: 'HTTP' } }] },
});

async function metric({ serving }: Program, name: string): Promise<string | undefined> {
  const { body } = await get(serving.ports.monitoring, '/metrics');
  return body.split('\n').find((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
}

test('the API server asks with the roots that it was told, and the metrics count what it asked', async () => {
  const { made, program } = await start();
  await expect.poll(() => bundleOf(made, VALIDATING)).not.toBe('');
  const roots = bundleOf(made, VALIDATING);
  expect(await ask(program, roots, '/validate', 'Gateway', gateway(80))).toMatchObject({ allowed: true });
  expect(await ask(program, roots, '/validate', 'Gateway', gateway(70_000))).toMatchObject({
    allowed: false,
    status: { message: expect.stringMatching(/^spec\.servers\[0\]\.port\.number: /) as string },
  });
  const { patch = '' } = await ask(program, roots, '/inject', 'Pod', pod());
  expect(Buffer.from(patch, 'base64').toString()).toContain('istio-proxy');
  expect(await metric(program, 'galley_validation_passed')).toMatch(/resource="gateways"\} 1$/);
  expect(await metric(program, 'galley_validation_failed')).toMatch(/resource="gateways"\} 1$/);
  expect(await metric(program, 'sidecar_injection_success_total')).toMatch(/ 1$/);
  expect(await metric(program, 'sidecar_injection_time_seconds_count')).toMatch(/ 1$/);
  expect(await metric(program, 'fairlead_webhook_configuration_current')).toMatch(/name="ours"\} [12]$/);
});

test('who applies an object in a namespace that is not selected is told so', async () => {
  const { made, program } = await start();
  await expect.poll(() => bundleOf(made, VALIDATING)).not.toBe('');
  const roots = bundleOf(made, VALIDATING);
  expect(await ask(program, roots, '/validate', 'Gateway', gateway(80))).not.toHaveProperty('warnings');
  await made.apply(meshConfig('discoverySelectors: [{ matchLabels: { mesh: in } }]'));
  await expect
    .poll(() => ask(program, roots, '/validate', 'Gateway', gateway(80)))
    .toMatchObject({
      allowed: true,
      warnings: [
        'has no effect: discoverySelectors of the mesh config in istio-system do not select the namespace shop. Give it a label that they select.',
      ],
    });
});

test('templates that are broken while it runs leave the former in use, which a metric shows', async () => {
  const { made, program, directory } = await start();
  await writeFile(join(directory, 'sidecar.yaml'), 'spec: [');
  program.clock.skip(10 * SECOND);
  expect(await program.logged('Injection templates cannot be used')).toMatchObject({ inUse: 'former' });
  expect(await metric(program, 'fairlead_injection_template_problems')).toMatch(/ [1-9]$/);
  const { patch = '' } = await ask(program, bundleOf(made, MUTATING), '/inject', 'Pod', pod());
  expect(Buffer.from(patch, 'base64').toString()).toContain('istio-proxy');
});

test('the mesh config decides what a Pod becomes, from the next one on', async () => {
  const { made, program } = await start();
  const roots = bundleOf(made, MUTATING);
  const mesh = 'defaultConfig: {proxyMetadata: {MARK: here}}';
  await made.apply({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'istio', namespace: 'istio-system' },
    data: { mesh },
  } as Parameters<Cluster['apply']>[0]);
  await program.committed(() => expect(program.object('ConfigMap', 'istio-system', 'istio')).toBeDefined());
  const { patch = '' } = await ask(program, roots, '/inject', 'Pod', pod());
  expect(Buffer.from(patch, 'base64').toString()).toContain('"MARK"');
});

test('a ProxyConfig of the namespace decides what a Pod becomes, from the next one on', async () => {
  const { made, program } = await start();
  await made.apply({
    apiVersion: 'networking.istio.io/v1beta1',
    kind: 'ProxyConfig',
    metadata: { name: 'mark', namespace: 'shop' },
    spec: { environmentVariables: { ISTIO_META_MARK: 'here' } },
  } as Parameters<Cluster['apply']>[0]);
  await program.committed(() => expect(program.object('ProxyConfig', 'shop', 'mark')).toBeDefined());
  const { patch = '' } = await ask(program, bundleOf(made, MUTATING), '/inject', 'Pod', pod());
  expect(Buffer.from(patch, 'base64').toString()).toContain('"ISTIO_META_MARK"');
});

test('a Pod that nobody can make of its annotations is refused, and the log names it', async () => {
  const { made, program } = await start();
  const annotations = { 'traffic.sidecar.istio.io/excludeInboundPorts': 'http' };
  const answer = await ask(program, bundleOf(made, MUTATING), '/inject', 'Pod', pod(annotations));
  expect(answer.status?.message).toContain('traffic.sidecar.istio.io/excludeInboundPorts');
  expect(await program.logged('Pod refused')).toMatchObject({ object: 'Pod/shop/web-*' });
  expect(await metric(program, 'sidecar_injection_failure_total')).toMatch(/ 1$/);
});

test('hostile objects get an answer, never an error, nor the end of the program', async () => {
  const { made, program } = await start();
  const roots = bundleOf(made, MUTATING);
  const deep = `${'{"a":'.repeat(400_000)}1${'}'.repeat(400_000)}`;
  const many = (length: number, each: (i: number) => object): object[] => Array.from({ length }, (_, i) => each(i));
  const hostile: readonly (readonly [path: string, kind: string, object: string])[] = [
    ['/inject', 'Pod', deep],
    ['/inject', 'Pod', `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":${deep}}`],
    ['/inject', 'Pod', '{"metadata":[],"spec":{"containers":[null,1,{"name":[]}]}}'],
    ['/inject', 'Pod', '{"__proto__":{"x":1},"metadata":{"annotations":{"__proto__":"x"},"labels":7}}'],
    ['/inject', 'Pod', JSON.stringify({ spec: { containers: many(20_000, (i) => ({ name: `c${i}`, image: 'a' })) } })],
    ['/validate', 'Gateway', JSON.stringify({ ...gateway(80), spec: 'deep' }).replace('"deep"', deep)],
    ['/validate', 'Gateway', JSON.stringify({ ...gateway(80), metadata: [] })],
    ['/validate', 'Gateway', JSON.stringify({ ...gateway(80), spec: { servers: many(40_000, () => ({ port: {} })) } })],
  ];
  for (const each of hostile) expect((await send(program, roots, ...each)).status).toBe(200);
  const message = 'the object has more than 200 levels of maps and lists within each other';
  expect(JSON.parse((await send(program, roots, ...hostile[0]!)).text)).toMatchObject({
    response: { uid: 'u', allowed: false, status: { message } },
  });
  expect(await ask(program, roots, '/validate', 'Gateway', gateway(80))).toMatchObject({ allowed: true });
  const { patch = '' } = await ask(program, roots, '/inject', 'Pod', pod());
  expect(Buffer.from(patch, 'base64').toString()).toContain('istio-proxy');
});

test('a replica is not ready before it has a certificate for proxies and the API server, and then stays so', async () => {
  const made = await secureCluster();
  made.server.cluster.denied.add(SECRETS);
  const program = await made.start();
  await program.logged('Ready');
  const ready = () => get(program.serving.ports.health, '/ready');
  const body = 'not ready, waiting for signing certificates\n';
  expect(await ready()).toEqual({ status: 503, body });
  const isReady = async () =>
    /^fairlead_ready (.)/m.exec((await get(program.serving.ports.monitoring, '/metrics')).body);
  expect((await isReady())?.[1]).toBe('0');
  made.server.cluster.denied.clear();
  program.clock.skip(60 * SECOND);
  await program.logged('Signing certificates');
  await expect.poll(async () => (await ready()).status).toBe(200);
  made.server.cluster.denied.add(SECRETS);
  program.clock.skip(120 * SECOND);
  await program.logged('Signing certificates cannot be used');
  expect((await ready()).status).toBe(200);
});

test('without a configuration of ours nothing is told to the API server', async () => {
  const made = await secureCluster();
  const { cluster } = made.server;
  cluster.install(MUTATING, 'MutatingWebhookConfiguration');
  cluster.apply(MUTATING, { metadata: { name: 'ours' }, webhooks: [{ name: 'w' }] });
  const program = await made.start({ webhookAddress: '127.0.0.1:0' });
  await program.logged('Signing certificates');
  await expect.poll(() => made.server.cluster.objects(SECRETS)).not.toEqual([]);
  expect(cluster.requests.filter(({ path }) => path.includes('admissionregistration'))).toEqual([]);
  expect(bundleOf(made, MUTATING)).toBe('');
});
