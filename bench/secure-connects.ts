import 'reflect-metadata';
import type { webcrypto } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import * as x509 from '@peculiar/x509';
import { kindOf } from '../src/api/kinds.ts';
import { systemClock } from '../src/base/clock.ts';
import { startEngine } from '../src/engine/engine.ts';
import { createProtos } from '../src/envoy/encode/proto.ts';
import { Authority } from '../src/identity/authority.ts';
import { readRequest } from '../src/identity/certificate-request.ts';
import { selfSigned } from '../src/identity/self-signed.ts';
import { readMaterial } from '../src/identity/signing-material.ts';
import { defaultMeshOptions } from '../src/mesh/inputs.ts';
import { Credentials } from '../src/secure/credentials.ts';
import { XdsClient } from '../test/conformance/xds-client.ts';
import type { Secure } from './ads-clients.ts';
import { CDS, EDS, LDS, Peers, request } from './ads-peers.ts';
import { namespaceOf, scaleObjects } from './scale-mesh.ts';

/**
 * What it costs the server when many proxies connect at once, in plaintext, with certificates, and with tokens that were
 * reviewed before: CPU of this process (the clients run in another one), once with all of their config to send, and once
 * with clients that say what they have.
 *
 *     node bench/secure-connects.ts [clients] [services] [rounds]
 */
const CLIENTS = Number(process.argv[2] ?? 1000);
const SERVICES = Number(process.argv[3] ?? 1000);
const ROUNDS = Number(process.argv[4] ?? 3);
const SERVER = 'fairlead.istio-system.svc';
const identity = 'spiffe://cluster.local/ns/ns-0/sa/client';

const credentials = new Credentials({
  names: [SERVER],
  clusterId: 'Kubernetes',
  aliases: {},
  trustDomainOf: () => 'cluster.local',
  own: {
    cluster: 'Kubernetes',
    review: () => Promise.resolve({ kind: 'valid', namespace: 'ns-0', serviceAccount: 'client' }),
  },
  others: { issuerOf: () => undefined },
  clock: systemClock,
  log: { warn: (message, fields) => console.warn(message, fields) },
  audit: () => undefined,
  allow: () => Promise.resolve(),
  present: (certificate) => server.present(certificate),
  signal: new AbortController().signal,
});
const secure = {
  host: '127.0.0.1',
  port: 0,
  authenticate: credentials.authenticate,
  services: [],
  refused: (reason: string) => console.warn('refused', reason),
};
const log = { info: () => undefined, warn: (message: string, fields: object) => console.warn(message, fields) };
const engine = await startEngine({
  mesh: defaultMeshOptions,
  protos: createProtos(),
  plaintext: { host: '127.0.0.1', port: 0 },
  secure,
  batch: { quiet: 50, max: 250 },
  log,
  rejected: (rejection) => console.warn('rejected', rejection),
  notAdmitted: (refusal) => console.warn('not admitted', refusal),
  heapBytes: getHeapStatistics().heap_size_limit,
  signal: new AbortController().signal,
});
const server = engine.ads;
const mesh = { services: SERVICES, namespaces: 20, endpoints: 5, routes: true };
for (const object of scaleObjects(mesh)) engine.objects.upsert(kindOf(object.apiVersion, object.kind)!.name, object);
await engine.open();

const entries = await selfSigned('cluster.local', new Date());
const read = readMaterial(entries, new Date());
if ('problem' in read) throw new Error(read.problem);
await credentials.use(read.material);
const trust = { ca: entries['root-cert.pem'], servername: SERVER };
const part = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url');
const token = [part({ alg: 'none' }), part({ exp: Date.now() / 1000 + 3600 }), 'x'].join('.');
const ways: Readonly<Record<string, Secure | undefined>> = {
  plaintext: undefined,
  certificates: { ...trust, ...(await certified()) },
  tokens: { ...trust, token },
};

/** As an agent has it: P-256, signed by the authority. */
async function certified(): Promise<{ readonly cert: string; readonly key: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const csr = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm: algorithm as webcrypto.EcKeyGenParams,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'url', value: identity }], true)],
  });
  const asked = await readRequest(csr.toString('pem'), identity);
  if ('problem' in asked) throw new Error(asked.problem);
  if ('problem' in read) throw new Error(read.problem);
  const signed = await new Authority(read.material).sign(asked.request, identity, 3600, new Date());
  if ('problem' in signed) throw new Error(signed.problem);
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey));
  return { cert: signed.chain[0]!, key: x509.PemConverter.encode(der, 'PRIVATE KEY') };
}

const peers = new Peers();
const nodes = Array.from(
  { length: CLIENTS },
  (_, i) => `sidecar~10.1.${Math.floor(i / 250)}.${i % 250}~client-${i}.ns-0~ns-0.svc.cluster.local`,
);
const hosts = Array.from({ length: SERVICES }, (_, i) => `s-${i}.${namespaceOf(i, mesh)}.svc.cluster.local`);
const names = hosts.map((host) => `outbound|8080||${host}`);
const known = await versionsOf(nodes[0]!);
const firstIsOld = new Map([...known, [names[0]!, 'old']]);
const kinds: Readonly<Record<string, { first: string[]; requests: string[]; responses: number }>> = {
  'from nothing': {
    first: nodes.map((node) => request({ typeUrl: CDS, node })),
    requests: ['', request({ typeUrl: EDS, names }), request({ typeUrl: LDS })],
    responses: 3,
  },
  'with versions': {
    first: nodes.map((node) => request({ typeUrl: CDS, node, versions: firstIsOld })),
    requests: [''],
    // There is exactly one to wait for.
    responses: 1,
  },
};

/** The clusters that a proxy has. */
async function versionsOf(node: string): Promise<ReadonlyMap<string, string>> {
  const client = new XdsClient(server.port!, true);
  client.send({ typeUrl: CDS, node: { id: node } });
  const { versions } = await client.next(CDS);
  client.close();
  return versions;
}

/** Milliseconds of CPU of this process. */
async function connect(
  secure: Secure | undefined,
  { first, requests, responses }: (typeof kinds)[string],
): Promise<number> {
  const { port, securePort } = server;
  const before = process.cpuUsage();
  const done = peers.done();
  peers.connect({
    port: secure === undefined ? port! : securePort!,
    ...(secure && { secure }),
    clients: CLIENTS,
    first,
    requests,
    atOnce: false,
    responses,
  });
  await done;
  const { user, system } = process.cpuUsage(before);
  await peers.disconnect();
  await delay(500);
  return (user + system) / 1000;
}

for (const [kind, what] of Object.entries(kinds)) {
  const figures = new Map<string, number[]>(Object.keys(ways).map((way) => [way, []]));
  for (const secure of Object.values(ways)) await connect(secure, what);
  for (let round = 0; round < ROUNDS; round++)
    for (const [way, secure] of Object.entries(ways)) figures.get(way)!.push(await connect(secure, what));
  const median = (way: string): number => figures.get(way)!.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]!;
  for (const way of figures.keys())
    console.log(
      `${CLIENTS} connect ${kind}, ${way.padEnd(13)} cpu ${median(way).toFixed(0).padStart(5)} ms` +
        `  ${(median(way) / median('plaintext')).toFixed(2)} of plaintext`,
    );
}
peers.end();
await server.close();
process.exit(0);
