import { expect, onTestFinished, test } from 'vitest';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { LDS } from '../features/proxy.ts';
import { SERVER, secureCluster, startSecure, tokenOf } from '../features/secure-cluster.ts';
import { reviews } from '../features/shop.ts';
import { secureCall, signCertificate } from '../harness/secure-call.ts';
import { blockOf } from './markdown.ts';

interface Bootstrap {
  readonly xds_servers: readonly {
    readonly server_uri: string;
    readonly channel_creds: readonly { readonly type: string; readonly config: object }[];
  }[];
  readonly node: {
    readonly id: string;
    readonly metadata: Readonly<Record<string, string>>;
  };
}

test('the bootstrap for gRPC in the guide is for the port that is on, and its node gets what it dials', async () => {
  const { xds_servers, node } = JSON.parse(blockOf('sidecars.md#grpc-without-a-proxy:json')) as Bootstrap;
  const [{ server_uri, channel_creds: [creds] } = { server_uri: '', channel_creds: [] }] = xds_servers;
  expect(server_uri).toBe(`${SERVER}:15012`);
  // gRFC A65: mutual TLS.
  expect(creds?.type).toBe('tls');
  expect(Object.keys(creds?.config ?? {}).sort()).toEqual([
    ...['ca_certificate_file', 'certificate_file', 'private_key_file', 'refresh_interval'],
  ]);

  const { NAMESPACE: namespace = '', GENERATOR: generator = '' } = node.metadata;
  const made = await secureCluster();
  await made.apply(...reviews);
  const { program, roots } = await startSecure(made);
  const port = program.serving.ports.secure!;
  const openssl = new OpenSsl();
  const account = secureCall(roots, { token: tokenOf(`${namespace}:client`) }, SERVER);
  const [chain = ''] = await signCertificate(port, account, openssl.request('rsa:2048'));
  const certificate = { chain, key: openssl.read('request.key') };
  const client = new XdsClient(port, true, undefined, secureCall(roots, { certificate }, SERVER));
  onTestFinished(() => client.close());
  const name = 'reviews.shop:80';
  client.send({ typeUrl: LDS, node: { id: node.id, generator }, subscribe: [name] });
  expect([...(await client.next(LDS)).resources.keys()]).toEqual([name]);
});
