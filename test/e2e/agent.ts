import { type Server, type ServerDuplexStream, ServerCredentials, Server as GrpcServer } from '@grpc/grpc-js';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { typeUrl } from '../../src/envoy/encode/proto.ts';
import { testProtos } from '../harness/mesh.ts';

/** What Istio's agent serves to the Envoy beside it. PEM. */
export interface WorkloadSecrets {
  readonly certificate: string;
  readonly key: string;
  readonly roots: string;
}

export interface Agent {
  /** For the bootstrap: the cluster through which Envoy reaches it. */
  readonly cluster: object;
  /** On 127.0.0.1; without a meaning on a socket. */
  readonly port: number;
  /** The names that it was asked for. */
  readonly asked: ReadonlySet<string>;
  /** Serves these from now on. */
  update(secrets: WorkloadSecrets): void;
  close(): void;
}

const METHOD = '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets';
const REQUEST = 'envoy.service.discovery.v3.DiscoveryRequest';
const RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse';

/**
 * The part of Istio's agent that a workload needs for mutual TLS: secrets for one Envoy, one stream for each name.
 *
 * @param path of a socket, for an Envoy in another network.
 */
export async function startAgent(initial: WorkloadSecrets, path?: string): Promise<Agent> {
  const protos = testProtos();
  const text = (inlineString: string): object => ({ inlineString });
  let [secrets, version] = [initial, 1];
  const secretOf = (name: string): object =>
    name === 'ROOTCA'
      ? { name, validationContext: { trustedCa: text(secrets.roots) } }
      : { name, tlsCertificate: { certificateChain: text(secrets.certificate), privateKey: text(secrets.key) } };
  const asked = new Set<string>();
  const streams = new Map<ServerDuplexStream<Buffer, Buffer>, readonly string[]>();
  const answer = (call: ServerDuplexStream<Buffer, Buffer>, names: readonly string[]): void => {
    const resources = names.map((name) => ({
      typeUrl: typeUrl(types.secret),
      value: protos.encode(types.secret, secretOf(name)),
    }));
    const response = { versionInfo: `${version}`, nonce: `${version}`, typeUrl: typeUrl(types.secret), resources };
    call.write(Buffer.from(protos.encode(RESPONSE, response)));
  };
  const stream = (call: ServerDuplexStream<Buffer, Buffer>): void => {
    call.on('data', (bytes: Buffer) => {
      const { resourceNames = [] } = protos.decode(REQUEST, bytes) as { readonly resourceNames?: readonly string[] };
      // What follows are acknowledgements.
      if (streams.has(call)) return;
      streams.set(call, resourceNames);
      for (const name of resourceNames) asked.add(name);
      answer(call, resourceNames);
    });
    call.on('end', () => call.end());
    call.on('close', () => streams.delete(call));
  };
  const same = (bytes: Buffer): Buffer => bytes;
  const server: Server = new GrpcServer();
  server.addService(
    {
      StreamSecrets: {
        path: METHOD,
        requestStream: true,
        responseStream: true,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    { StreamSecrets: stream },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(
      path === undefined ? '127.0.0.1:0' : `unix:${path}`,
      ServerCredentials.createInsecure(),
      (error, bound) => (error === null ? resolve(bound) : reject(error)),
    ),
  );
  const address =
    path === undefined ? { socketAddress: { address: '127.0.0.1', portValue: port } } : { pipe: { path } };
  return {
    port,
    asked,
    cluster: {
      name: 'sds-grpc',
      type: 'STATIC',
      connectTimeout: '1s',
      typedExtensionProtocolOptions: {
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
          '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
          explicitHttpConfig: { http2ProtocolOptions: {} },
        },
      },
      loadAssignment: { clusterName: 'sds-grpc', endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }] },
    },
    update(changed) {
      [secrets, version] = [changed, version + 1];
      for (const [call, names] of streams) answer(call, names);
    },
    close: () => server.forceShutdown(),
  };
}
