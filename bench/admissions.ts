/** 1,000 Pods and 1,000 objects, 50 a second each, over HTTPS: `node bench/admissions.ts`. The server is a process of its own. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createValidator } from '../src/api/validate.ts';
import { readMeshSettings } from '../src/config/config.ts';
import { createProtos } from '../src/envoy/encode/proto.ts';
import { Authority } from '../src/identity/authority.ts';
import { selfSigned } from '../src/identity/self-signed.ts';
import { readMaterial } from '../src/identity/signing-material.ts';
import { loadInjection } from '../src/injection/configuration.ts';
import { createInjector } from '../src/injection/injector.ts';
import { createObjectCheck } from '../src/commands/object-check.ts';
import { injectPod } from '../src/webhooks/injecting.ts';
import { validate } from '../src/webhooks/validating.ts';
import { type Webhook, serveWebhooks } from '../src/webhooks/webhook-server.ts';

const COUNT = 1_000;
const PER_SECOND = 50;

/** As the chart mounts it. */
function templates(): ReadonlyMap<string, string> {
  const directory = join(import.meta.dirname, '../charts/fairlead/files/injection');
  const files = readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), 'utf8')] as const);
  const settings = {
    nativeSidecars: true,
    proxy: { image: 'fairlead-proxy:1', discoveryAddress: 'fairlead.mesh.svc:15012' },
  };
  return new Map([...files, ['config.yaml', JSON.stringify(settings)]]);
}

async function serve(): Promise<void> {
  const loaded = loadInjection(templates());
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems));
  const injector = createInjector(loaded.config);
  const check = createObjectCheck(readMeshSettings({ flags: {}, env: {} }), createProtos(), createValidator());
  const labels = { 'istio-injection': 'enabled' };
  const server = await serveWebhooks({
    address: { host: '127.0.0.1', port: 0 },
    webhooks: new Map<string, Webhook>([
      ['validate', (review) => validate(review, check)],
      [
        'inject',
        (review, path) => {
          const known = {
            injector: () => injector,
            meshConfig: () => ({}),
            proxyConfigsOf: () => ({ shadowed: [] }),
            labelsOf: () => labels,
          };
          const injection = injectPod(review, path, { ...known, freshLabelsOf: () => Promise.resolve(labels) });
          if (!(injection instanceof Promise)) return injection.verdict;
          return injection.then((decide) => (again) => decide(again).verdict);
        },
      ],
    ]),
    draining: () => false,
    log: console,
    signal: new AbortController().signal,
  });
  const read = readMaterial(await selfSigned('cluster.local', new Date()), new Date());
  if ('problem' in read) throw new Error(read.problem);
  const signed = await new Authority(read.material).signServer(['fairlead.mesh.svc'], 3600, new Date());
  if ('problem' in signed) throw new Error(signed.problem);
  server.present({ certificate: signed.chain[0]!, key: signed.key });
  process.on('message', () => process.send!({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }));
  process.send!({ port: server.port, root: read.material.roots.join('') });
}

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    generateName: 'web-6d4cf56db6-',
    labels: { app: 'web', version: 'v1', 'pod-template-hash': '6d4cf56db6' },
  },
  spec: {
    serviceAccountName: 'web',
    containers: [
      {
        name: 'web',
        image: 'web:1',
        ports: [{ containerPort: 8080, name: 'http' }],
        readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
        livenessProbe: { httpGet: { path: '/live', port: 8080 } },
        env: Array.from({ length: 20 }, (_, i) => ({ name: `VARIABLE_${i}`, value: 'x'.repeat(50) })),
        volumeMounts: [{ name: 'token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }],
      },
    ],
    volumes: [{ name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }],
  },
};

const virtualService = {
  apiVersion: 'networking.istio.io/v1',
  kind: 'VirtualService',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    hosts: ['web'],
    http: Array.from({ length: 20 }, (_, i) => ({
      match: [{ uri: { prefix: `/path-${i}/` }, headers: { 'x-version': { exact: 'v1' } } }],
      route: [
        { destination: { host: 'web', subset: 'v1' }, weight: 90 },
        { destination: { host: 'web', subset: 'v2' }, weight: 10 },
      ],
      timeout: '5s',
    })),
  },
};

async function measure(): Promise<void> {
  const server = fork(import.meta.filename, ['serve']);
  const ask = async <T>(): Promise<T> => ((await once(server, 'message')) as [T])[0];
  const { port, root } = await ask<{ port: number; root: string }>();
  const agent = new Agent({ keepAlive: true, ca: root, servername: 'fairlead.mesh.svc' });
  const call = (path: string, kind: object, object: object): Promise<number> =>
    new Promise((resolve, reject) => {
      const review = { uid: 'u', operation: 'CREATE', namespace: 'shop', resource: {}, kind, object };
      const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: review });
      const began = performance.now();
      const headers = { 'content-type': 'application/json' };
      const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => {
          if (!text.includes('"allowed":true')) reject(new Error(text));
          else resolve(performance.now() - began);
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const figures = async (): Promise<{ cpu: NodeJS.CpuUsage; rss: number }> => {
    const answer = ask<{ cpu: NodeJS.CpuUsage; rss: number }>();
    server.send('figures');
    return answer;
  };
  const cases = {
    inject: () => call('/inject', { group: '', version: 'v1', kind: 'Pod' }, pod),
    validate: () => call('/validate', { kind: 'VirtualService' }, virtualService),
  };
  for (const [name, once] of Object.entries(cases)) {
    const first = await once();
    for (let i = 0; i < 50; i++) await once();
    const before = await figures();
    const times: Promise<number>[] = [];
    for (let i = 0; i < COUNT; i++) {
      times.push(once());
      await setTimeout(1000 / PER_SECOND);
    }
    const sorted = (await Promise.all(times)).sort((a, b) => a - b);
    const after = await figures();
    const cpu = (after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system) / 1000 / COUNT;
    const rounded = (ms: number): number => Number(ms.toFixed(1));
    console.log(
      JSON.stringify({
        admission: name,
        firstMs: rounded(first),
        p50Ms: rounded(sorted[COUNT / 2]!),
        p99Ms: rounded(sorted[Math.floor(COUNT * 0.99)]!),
        longestMs: rounded(sorted.at(-1)!),
        cpuMsEach: rounded(cpu),
        rssMB: Math.round(after.rss / 1e6),
      }),
    );
  }
  agent.destroy();
  server.kill();
}

await (process.argv[2] === 'serve' ? serve() : measure());
