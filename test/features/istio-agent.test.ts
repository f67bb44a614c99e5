import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { isObject } from '../../src/api/json.ts';
import type { Json } from '../../src/envoy/encode/proto.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { NAME_TABLE } from '../../src/model/named-host.ts';
import { type Response, XdsClient } from '../conformance/xds-client.ts';
import { readObjects, testProtos } from '../harness/mesh.ts';
import { readNameTable } from '../harness/names.ts';
import { secureCall } from '../harness/secure-call.ts';
import { CDS, EDS, LDS, RDS, SDS } from './proxy.ts';
import { SERVER, secureCluster, startSecure, tokenOf } from './secure-cluster.ts';
import { ACCESS_REVIEWS } from './sources.ts';

const REQUEST = 'envoy.service.discovery.v3.DeltaDiscoveryRequest';
const ROOTS = 'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig';
const FOLDER = join(import.meta.dirname, 'istio-agent');

/** A `DeltaDiscoveryRequest`. */
interface Recorded {
  readonly typeUrl: string;
  readonly responseNonce?: string;
  readonly initialResourceVersions?: Readonly<Record<string, string>>;
}

interface Recording {
  readonly headers: Readonly<Record<string, string>>;
  readonly certificate?: { readonly csr: string; readonly validityDuration: number; readonly metadata: string };
  readonly requests: readonly Recorded[];
}

const recording = (name: string) => JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as Recording;

async function startMesh() {
  const made = await secureCluster();
  made.server.cluster.virtual.set(ACCESS_REVIEWS, () => ({ status: { allowed: true } }));
  const openssl = new OpenSsl();
  openssl.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
  const base64 = (file: string): string => Buffer.from(openssl.read(file)).toString('base64');
  await made.apply(...readObjects(readFileSync(join(FOLDER, 'mesh.yaml'), 'utf8')), {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'shop-example', namespace: 'shop' },
    data: { 'tls.crt': base64('root.pem'), 'tls.key': base64('root.key') },
  } as unknown as KubernetesObject);
  const mesh = await startSecure(made);
  // What is served follows from automatic addresses, too, which come later.
  const addressed = readObjects(readFileSync(join(FOLDER, 'mesh.yaml'), 'utf8')).filter(
    (entry) => entry.kind === 'ServiceEntry' && 'spec' in entry && isObject(entry.spec) && !('addresses' in entry.spec),
  );
  await made.changed(() => {
    for (const entry of addressed) expect(made.object(entry)['status']).toMatchObject({ addresses: [{}, {}] });
  });
  await mesh.program.settled();
  return mesh;
}

type Mesh = Awaited<ReturnType<typeof startMesh>>;

/** How the agent of an account calls: with a token, and the headers that it was seen to send. */
function callOf({ roots }: Mesh, account: string, headers: Recording['headers']) {
  const call = secureCall(roots, { token: tokenOf(`shop:${account}`) }, SERVER);
  for (const [name, value] of Object.entries(headers)) if (name !== 'user-agent') call.metadata.set(name, value);
  return call;
}

/** A stream on which recorded requests are sent, in order. */
class Replay {
  readonly responses: Response[] = [];
  readonly #client: XdsClient;

  constructor(mesh: Mesh, account: string, { headers }: Recording) {
    const { secure } = mesh.program.serving.ports;
    this.#client = new XdsClient(secure!, true, undefined, callOf(mesh, account, headers));
    onTestFinished(() => this.#client.close());
  }

  /** @param before a stream whose resources it names, in place of those of the recording. */
  async run(requests: readonly Recorded[], before?: Replay): Promise<void> {
    const open = new Set<string>();
    for (const request of requests) {
      const { typeUrl, responseNonce, initialResourceVersions: had } = request;
      if (responseNonce === undefined) {
        open.add(typeUrl);
        this.#send({ ...request, ...(had && { initialResourceVersions: before!.versions(typeUrl) }) });
      } else if (open.delete(typeUrl)) await this.take(typeUrl);
      // What was acknowledged without a request of its own may have come with the response before it.
    }
  }

  /** The next response of a type, which is acknowledged. */
  async take(typeUrl: string): Promise<Response> {
    const response = await this.#client.next(typeUrl);
    this.responses.push(response);
    this.#send({ typeUrl, responseNonce: response.nonce });
    return response;
  }

  /** A resource, once it is there. */
  async resource(typeUrl: string, name: string): Promise<Uint8Array> {
    for (;;) {
      const found = this.of(typeUrl).get(name);
      if (found !== undefined) return found;
      await this.take(typeUrl);
    }
  }

  of(typeUrl: string): ReadonlyMap<string, Uint8Array> {
    return new Map(this.responses.filter((each) => each.typeUrl === typeUrl).flatMap((each) => [...each.resources]));
  }

  names(typeUrl: string): string[] {
    return [...this.of(typeUrl).keys()].sort();
  }

  /** By name. */
  versions(typeUrl: string): Record<string, string> {
    const ofType = this.responses.filter((each) => each.typeUrl === typeUrl);
    return Object.fromEntries(ofType.flatMap((each) => [...each.versions]));
  }

  /** The types of what came and was not expected, up to an answer to a question of our own. */
  async rest(): Promise<string[]> {
    const came = await this.#client.settled(RDS);
    return came.map(({ typeUrl }) => typeUrl);
  }

  #send(request: Recorded): void {
    const protos = testProtos();
    this.#client.sendBytes(protos.encode(REQUEST, protos.fromJson(REQUEST, request as unknown as Json)));
  }
}

/** ProxyConfig: `ca_certificates_pem` 34. */
function rootsOf(bytes: Uint8Array): string[] {
  const reader = protobuf.Reader.create(bytes);
  const found: string[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === 34) found.push(reader.string());
    else reader.skipType(tag & 7);
  }
  return found;
}

test("the certificate that Istio's agent asks for", async () => {
  const mesh = await startMesh();
  const { headers, certificate } = recording('sidecar');
  const { csr, validityDuration, metadata } = certificate!;
  const { credentials, metadata: sent } = callOf(mesh, 'recorded', headers);
  const client = new Client(`127.0.0.1:${mesh.program.serving.ports.secure!}`, credentials, {
    'grpc.ssl_target_name_override': SERVER,
  });
  onTestFinished(() => client.close());
  const request = protobuf.Writer.create().uint32(10).string(csr).uint32(24).int64(validityDuration);
  request.uint32(34).bytes(Buffer.from(metadata, 'base64'));
  const chain = await new Promise<string[]>((resolve, reject) =>
    client.makeUnaryRequest(
      '/istio.v1.auth.IstioCertificateService/CreateCertificate',
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes: Buffer) => {
        const reader = protobuf.Reader.create(bytes);
        const found: string[] = [];
        while (reader.pos < reader.len) {
          reader.uint32();
          found.push(reader.string());
        }
        return found;
      },
      request.finish(),
      sent,
      (error, value) => (error === null ? resolve(value!) : reject(error)),
    ),
  );
  // The agent refuses a chain of one, and takes its last element for the roots.
  expect(chain).toHaveLength(2);
  expect(chain[1]).toBe(mesh.roots);
  const leaf = new X509Certificate(chain[0]!);
  expect(leaf.subjectAltName).toBe('URI:spiffe://cluster.local/ns/shop/sa/recorded');
  expect(leaf.verify(new X509Certificate(mesh.roots).publicKey)).toBe(true);
  expect((Date.parse(leaf.validTo) - Date.now()) / 1000).toBeGreaterThan(validityDuration - 60);
});

test("the stream of Istio's agent beside a sidecar, and the next one", async () => {
  const mesh = await startMesh();
  const first = new Replay(mesh, 'recorded', recording('sidecar'));
  await first.run(recording('sidecar').requests);
  // Envoy asks for listeners once it has its clusters and their endpoints, and is ready once it has all of these.
  expect(first.names(CDS)).toEqual(expect.arrayContaining(['PassthroughCluster', 'outbound|9000||names.example']));
  expect(first.names(EDS)).toEqual([
    'outbound|31011||own-side.shop.example',
    'outbound|31012||istio-side.shop.example',
    'outbound|9000||names.example',
    'outbound|9001||auto.example',
  ]);
  expect(first.names(LDS)).toEqual(expect.arrayContaining(['virtualInbound', 'virtualOutbound', '192.0.2.77_9000']));
  expect(first.names(RDS)).toEqual(['31011', '31012']);
  // The agent takes the first resource of a response for the whole table, and is not ready without one.
  const tables = [...first.of(NAME_TABLE)];
  expect(tables).toHaveLength(1);
  const kubernetes = { registry: 'Kubernetes', namespace: 'shop', ips: ['192.0.2.88'] };
  expect(readNameTable(tables[0]![1])).toMatchObject({
    'names.example': { registry: 'External', ips: ['192.0.2.77'] },
    'auto.example': { registry: 'External', ips: [expect.stringContaining(':'), expect.stringMatching(/^240\.240\./)] },
    'db.shop.svc.cluster.local': { ...kubernetes, shortname: 'db' },
    'db-0.db.shop.svc.cluster.local': { ...kubernetes, shortname: 'db-0.db' },
  });
  // Likewise for roots; it signs in with a new CSR when they are others than those that it has.
  expect([...first.of(ROOTS).values()].map(rootsOf)).toEqual([[mesh.roots]]);
  // Health is not a question: nothing answers it, and the stream goes on.
  expect(await first.rest()).toEqual([]);

  const { requests, headers } = recording('sidecar-again');
  const again = new Replay(mesh, 'recorded', { requests, headers });
  await again.run(requests, first);
  // The agent keeps neither names nor roots over streams; Envoy has named the rest.
  expect([...new Set([...again.responses.map(({ typeUrl }) => typeUrl), ...(await again.rest())])].sort()).toEqual(
    [ROOTS, NAME_TABLE].sort(),
  );
});

test("the stream of Istio's agent beside a gateway", async () => {
  const mesh = await startMesh();
  const router = new Replay(mesh, 'gateway', recording('gateway'));
  await router.run(recording('gateway').requests);
  expect(router.names(EDS)).toContain('outbound|5432||db.shop.svc.cluster.local');
  await router.resource(LDS, '0.0.0.0_8081');
  await router.resource(LDS, '0.0.0.0_8443');
  await router.resource(RDS, 'https.8443.https.g.shop');
  const secret = testProtos().toJson(
    'envoy.extensions.transport_sockets.tls.v3.Secret',
    await router.resource(SDS, 'kubernetes://shop-example'),
  );
  expect(secret).toMatchObject({ name: 'kubernetes://shop-example', tlsCertificate: { privateKey: {} } });
  expect([...router.of(ROOTS).values()].map(rootsOf)).toEqual([[mesh.roots]]);
});
