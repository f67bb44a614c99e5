import 'reflect-metadata';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { newKey } from '../src/agent/certificate/key.ts';
import { Authority } from '../src/identity/authority.ts';
import { readRequest } from '../src/identity/certificate-request.ts';
import { selfSigned } from '../src/identity/self-signed.ts';
import { readMaterial } from '../src/identity/signing-material.ts';
import { pathOf } from '../test/peers/peer.ts';
import { freePorts } from '../src/testing/free-ports.ts';
import { type RunningProcess, plainEnvironment, poll, startProcess } from '../test/peers/process.ts';
import { bundle } from '../tools/build.ts';

/**
 * What an agent costs a Pod: from its start until it starts Envoy and until that is ready, its memory and its CPU, at rest
 * and while its certificate is renewed every ten seconds. Agent and control plane are bundled; Envoy is real.
 *
 *     node bench/agent.ts [starts] [seconds]
 */
const STARTS = Number(process.argv[2] ?? 5);
const SECONDS = Number(process.argv[3] ?? 30);
/** As in `Dockerfile.proxy`. */
const FLAGS = ['--max-semi-space-size=1', '--v8-pool-size=0', '--optimize-for-size'];
const SERVER = 'fairlead.istio-system.svc';
const IDENTITY = 'spiffe://cluster.local/ns/shop/sa/bench';
const SHORT_LIFE = '20s';

const scratch = mkdtempSync(join(tmpdir(), 'fl-bench-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
await bundle(join(scratch, 'dist'));
const program = join(scratch, 'dist/main.js');
const envoyPath = pathOf('envoy');
const entries = await selfSigned('cluster.local', new Date());
const authority = join(scratch, 'ca');
for (const [name, pem] of Object.entries(entries)) write(join(authority, name), pem as string);
const certificate = await certified();
const objects = join(scratch, 'objects');
for (let i = 0; i < 200; i++) write(join(objects, `s-${i}.yaml`), serviceEntry(i));
const [port = 0, health = 0] = await freePorts(2);
const serving = startProcess(
  process.execPath,
  [program, 'serve', '--directory', objects, '--ca-directory', authority, '--grpc-address', 'off'].concat([
    '--secure-grpc-address',
    `127.0.0.1:${port}`,
    '--health-address',
    `127.0.0.1:${health}`,
  ]),
  { env: plainEnvironment() },
);
await poll('Fairlead is ready', () => isOk(`http://127.0.0.1:${health}/ready`), { process: serving });

const starts: Start[] = [];
for (let i = 0; i < STARTS; i++) {
  const agent = await start();
  starts.push(agent);
  await agent.process.stop();
}
const middle = (of: (start: Start) => number): string => {
  const values = starts.map(of).sort((a, b) => a - b);
  return `${values[values.length >> 1]!.toFixed(0)} ms (${values[0]!.toFixed(0)} to ${values.at(-1)!.toFixed(0)})`;
};
console.log(`until Envoy is started        ${middle(({ started }) => started)}, CPU ${middle(({ cpu }) => cpu)}`);
console.log(`until it is ready             ${middle(({ ready }) => ready)}`);
const resting = await observe({});
console.log(`memory after ${SECONDS} s            RSS ${resting.rss} MB, ${resting.own} MB of its own`);
console.log(`CPU at rest                   ${resting.cpu} ms in ${SECONDS} s`);
const busy = await observe({ SECRET_TTL: SHORT_LIFE });
console.log(`CPU while certificates change ${busy.cpu} ms in ${SECONDS} s, ${busy.certificates} certificates`);
await serving.stop();
process.exit(0);

interface Start {
  readonly process: RunningProcess;
  /** Milliseconds since the start. */
  readonly started: number;
  readonly ready: number;
  /** Milliseconds of CPU until Envoy was started. */
  readonly cpu: number;
}

/** An agent as a Pod without interception has it; settles once the readiness probe succeeds. */
async function start(env: NodeJS.ProcessEnv = {}): Promise<Start> {
  const root = mkdtempSync(join(scratch, 'pod-'));
  const [admin = 0, status = 0, probe = 0, stats = 0] = await freePorts(4);
  write(join(root, 'var/run/secrets/istio/root-cert.pem'), entries['root-cert.pem']);
  write(join(root, 'etc/istio/pod/labels'), 'app="bench"\n');
  write(join(root, 'etc/certs/root-cert.pem'), entries['root-cert.pem']);
  write(join(root, 'etc/certs/cert-chain.pem'), certificate.chain);
  write(join(root, 'etc/certs/key.pem'), certificate.key);
  const config = { discoveryAddress: `127.0.0.1:${port}`, proxyAdminPort: admin, statusPort: status, concurrency: 1 };
  const begin = performance.now();
  const child = startProcess(
    process.execPath,
    [...FLAGS, program, 'agent', 'sidecar', '--root', root, '--domain', 'shop.svc.cluster.local'],
    {
      env: {
        ...plainEnvironment(),
        POD_NAME: 'bench-1',
        POD_NAMESPACE: 'shop',
        SERVICE_ACCOUNT: 'bench',
        INSTANCE_IP: '127.0.0.1',
        ISTIOD_SAN: SERVER,
        PROV_CERT: 'etc/certs',
        ENVOY_STATUS_PORT: `${probe}`,
        ENVOY_PROMETHEUS_PORT: `${stats}`,
        ISTIO_META_INTERCEPTION_MODE: 'NONE',
        PROXY_CONFIG: JSON.stringify({ ...config, binaryPath: envoyPath }),
        ...env,
      },
    },
  );
  const started = await poll('Envoy', () => Promise.resolve(hasEnvoy(child.pid) ? performance.now() : undefined), {
    process: child,
  });
  const cpu = cpuOf(child.pid);
  await poll('readiness', () => isOk(`http://127.0.0.1:${probe}/healthz/ready`), { process: child });
  return { process: child, started: started - begin, ready: performance.now() - begin, cpu };
}

/** What an agent takes once it is ready. */
async function observe(env: NodeJS.ProcessEnv) {
  const { process: child } = await start(env);
  await delay(5_000);
  const before = { cpu: cpuOf(child.pid), certificates: certificatesOf(child) };
  await delay(SECONDS * 1000);
  const after = { cpu: cpuOf(child.pid), certificates: certificatesOf(child) };
  const memory = readFileSync(`/proc/${child.pid}/smaps_rollup`, 'utf8');
  const megabytes = (...names: string[]): string =>
    (
      names.reduce((sum, name) => sum + Number(new RegExp(`^${name}: +(\\d+)`, 'm').exec(memory)?.[1]), 0) / 1024
    ).toFixed(0);
  await child.stop();
  return {
    cpu: after.cpu - before.cpu,
    certificates: after.certificates - before.certificates,
    rss: megabytes('Rss'),
    own: megabytes('Private_Clean', 'Private_Dirty'),
  };
}

function certificatesOf(child: RunningProcess): number {
  return child.log().split('Certificate received').length - 1;
}

/** Milliseconds; the kernel counts in hundredths of a second. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function hasEnvoy(pid: number): boolean {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
    );
    return children.some((child) => readlinkSync(`/proc/${child}/exe`) === envoyPath);
  } catch {
    // It has ended between two looks.
    return false;
  }
}

function isOk(url: string): Promise<true | undefined> {
  return fetch(url).then(
    ({ ok }) => ok || undefined,
    () => undefined,
  );
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** For a day. */
async function certified(): Promise<{ readonly chain: string; readonly key: string }> {
  const { key, csr } = await newKey(IDENTITY);
  const [asked, read] = [await readRequest(csr, IDENTITY), readMaterial(entries, new Date())];
  if ('problem' in asked) throw new Error(asked.problem);
  if ('problem' in read) throw new Error(read.problem);
  const signed = await new Authority(read.material).sign(asked.request, IDENTITY, 86_400, new Date());
  if ('problem' in signed) throw new Error(signed.problem);
  return { chain: signed.chain.join(''), key };
}

function serviceEntry(i: number): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s-${i}, namespace: shop}
spec:
  hosts: [s-${i}.shop.example]
  addresses: [10.9.0.${i}]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.10.0.${i}}]
`;
}
