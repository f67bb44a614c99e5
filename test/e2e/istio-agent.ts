import {
  Client,
  type ClientDuplexStream,
  type Metadata,
  Server as GrpcServer,
  ServerCredentials,
  type ServerDuplexStream,
} from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import protobuf from 'protobufjs';
import { mergeRoots } from '../../src/identity/roots.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { secureCall, signCertificate } from '../harness/secure-call.ts';
import { poll } from '../peers/process.ts';
import { startAgent } from './agent.ts';

export interface IstioAgentOptions {
  /** Of the control plane: 15012. */
  readonly port: number;
  /** The name that the control plane must have. */
  readonly server: string;
  /** As in the mounted ConfigMap: read for each connection. */
  readonly roots: () => string;
  readonly token: string;
}

/** What Istio's agent with PROXY_CONFIG_XDS_AGENT does between one Envoy and the control plane. */
export interface IstioAgent {
  /** Of the ADS server for Envoy: plaintext, delta. */
  readonly adsPort: number;
  /** For the bootstrap: the cluster through which Envoy reaches its secrets. */
  readonly cluster: object;
  /** PEM, of the certificate that Envoy has now. */
  readonly certificate: () => string;
  /** From now on, roots that the control plane sends are left lying; calling what is returned takes them up. */
  hold(): () => void;
}

const METHOD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources';
const PROXY_CONFIG = 'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig';
const same = (bytes: Buffer): Buffer => bytes;

/** Ends with the test. */
export async function startIstioAgent(options: IstioAgentOptions): Promise<IstioAgent> {
  const { port, server: name, token } = options;
  const call = () => secureCall(options.roots(), { token }, name);
  /** A key, and a certificate for it. Both become Envoy's, with the roots that came with them and all others. */
  const certify = async (others: readonly string[]) => {
    const openssl = new OpenSsl();
    const csr = openssl.request('ec -pkeyopt ec_paramgen_curve:P-256');
    // The ConfigMap may come later than the certificate that it is for.
    const chain = await poll('a certificate', async () => {
      const answer = await signCertificate(port, call(), csr);
      return typeof answer === 'string' ? undefined : answer;
    });
    const certificate = chain.slice(0, -1).join('');
    return { certificate, key: openssl.read('request.key'), roots: mergeRoots([chain.at(-1)!, ...others]) };
  };
  let secrets = await certify([]);
  const agent = await startAgent(secrets);
  onTestFinished(() => agent.close());
  let [held, left]: [boolean, (() => Promise<void>) | undefined] = [false, undefined];
  const take = async (roots: readonly string[], acknowledge: () => void): Promise<void> => {
    // First what peers may present, then what is presented to them.
    agent.update({ ...secrets, roots: mergeRoots([secrets.roots, ...roots]) });
    secrets = await certify(roots);
    agent.update(secrets);
    acknowledge();
  };

  const serve = (envoy: ServerDuplexStream<Buffer, Buffer>): void => {
    const { credentials, metadata } = call();
    const client = new Client(`127.0.0.1:${port}`, credentials, {
      'grpc.ssl_target_name_override': name,
      'grpc.use_local_subchannel_pool': 1,
    });
    const upstream: ClientDuplexStream<Buffer, Buffer> = client.makeBidiStreamRequest(
      METHOD,
      same,
      same,
      metadata as Metadata,
    );
    let asked = false;
    envoy.on('data', (bytes: Buffer) => {
      upstream.write(bytes);
      if (!asked) upstream.write(requestOf());
      asked = true;
    });
    upstream.on('data', (bytes: Buffer) => {
      const { typeUrl, nonce, values } = readResponse(bytes);
      if (typeUrl !== PROXY_CONFIG) return void envoy.write(bytes);
      const taking = (): Promise<void> => take(values.flatMap(rootsOf), () => upstream.write(requestOf(nonce)));
      if (held) left = taking;
      else void taking();
    });
    const end = (): void => {
      upstream.cancel();
      client.close();
      envoy.end();
    };
    upstream.on('error', end).on('end', end);
    envoy.on('end', end).on('cancelled', end).on('error', end);
  };
  const server = new GrpcServer();
  server.addService(
    {
      Stream: {
        path: METHOD,
        requestStream: true,
        responseStream: true,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    { Stream: serve },
  );
  onTestFinished(() => server.forceShutdown());
  const adsPort = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return {
    adsPort,
    cluster: agent.cluster,
    certificate: () => secrets.certificate,
    hold() {
      held = true;
      return () => {
        held = false;
        void left?.();
      };
    },
  };
}

/** DeltaDiscoveryRequest: `type_url` 2, `response_nonce` 6. */
function requestOf(nonce = ''): Buffer {
  return Buffer.from(protobuf.Writer.create().uint32(18).string(PROXY_CONFIG).uint32(50).string(nonce).finish());
}

/** DeltaDiscoveryResponse: `resources` 2 (with `resource` 2, an Any with `value` 2), `type_url` 4, `nonce` 5. */
function readResponse(bytes: Uint8Array) {
  const fields = fieldsOf(bytes);
  const text = (number: number): string =>
    Buffer.from(fields.find(([field]) => field === number)?.[1] ?? []).toString();
  const inside = (value: Uint8Array): Uint8Array[] =>
    fieldsOf(value).flatMap(([field, inner]) => (field === 2 ? [inner] : []));
  const values = inside(bytes).flatMap(inside).flatMap(inside);
  return { typeUrl: text(4), nonce: text(5), values };
}

/** ProxyConfig: `ca_certificates_pem` 34. */
function rootsOf(bytes: Uint8Array): string[] {
  return fieldsOf(bytes).flatMap(([field, value]) => (field === 34 ? [Buffer.from(value).toString()] : []));
}

function fieldsOf(bytes: Uint8Array): [number, Uint8Array][] {
  const reader = protobuf.Reader.create(bytes);
  const fields: [number, Uint8Array][] = [];
  while (reader.pos < reader.len) fields.push([reader.uint32() >>> 3, reader.bytes()]);
  return fields;
}
