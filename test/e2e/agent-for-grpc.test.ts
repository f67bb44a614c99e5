import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ServiceError, status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { freePort } from '../conformance/envoy-resources.ts';
import { dial, serveEcho } from '../features/grpc-library.ts';
import { destinationRule, object, pod, target } from '../features/objects.ts';
import { SERVER, secureCluster, startSecure, tokenOf } from '../features/secure-cluster.ts';
import { callEcho } from '../peers/echo.ts';
import { withPeers } from '../peers/with-peers.ts';
import { startFairleadAgent } from './fairlead-agent.ts';

withPeers(['envoy'], 'an agent without an Envoy', () => {
  test('lets gRPC clients and servers speak mutual TLS, and obey policies', async () => {
    const made = await secureCluster();
    const port = await freePort();
    const { metadata, ...slice } = object('discovery.k8s.io/v1', 'EndpointSlice', 'echo', {
      addressType: 'IPv4',
      ports: [{ name: 'grpc', port }],
      endpoints: [{ ...target('echo-1', '127.0.0.1'), conditions: { ready: true } }],
    });
    const echo = pod('echo-1', '127.0.0.1', { app: 'echo', 'security.istio.io/tlsMode': 'istio' });
    await made.apply(
      object('v1', 'Service', 'echo', {
        spec: {
          clusterIP: '10.96.0.1',
          ports: [{ name: 'grpc', port: 9000, targetPort: port }],
          selector: { app: 'echo' },
        },
      }),
      { ...echo, metadata: { ...echo.metadata, annotations: { 'inject.istio.io/templates': 'grpc-agent' } } },
      { ...slice, metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'echo' } } },
      destinationRule('echo', { host: 'echo', trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } }),
      object('security.istio.io/v1', 'AuthorizationPolicy', 'allow', {
        spec: { rules: [{ from: [{ source: { principals: ['cluster.local/ns/shop/sa/client'] } }] }] },
      }),
    );
    const { program, roots } = await startSecure(made);
    /** The bootstrap that an agent has written for this account. */
    const agentOf = async (account: string): Promise<{ readonly bootstrap: string }> => {
      const agent = await startFairleadAgent({
        port: program.serving.ports.secure!,
        server: SERVER,
        roots,
        token: tokenOf(`shop:${account}`),
        namespace: 'shop',
        account,
        env: {
          DISABLE_ENVOY: 'true',
          GRPC_XDS_BOOTSTRAP: 'etc/istio/proxy/grpc-bootstrap.json',
          OUTPUT_CERTS: 'var/lib/istio/data',
          ...(account === 'default' && { POD_NAME: 'echo-1' }),
        },
      });
      await expect
        .poll(() => agent.get(agent.ports.status, '/healthz/ready').catch(() => undefined))
        .toMatchObject({ status: 200 });
      return { bootstrap: readFileSync(join(agent.root, 'etc/istio/proxy/grpc-bootstrap.json'), 'utf8') };
    };
    await serveEcho('one', port, await agentOf('default'));
    expect(await callEcho(dial('echo:9000', await agentOf('client')))).toBe('one');
    const refused = await callEcho(dial('echo:9000', await agentOf('other'))).catch(({ code }: ServiceError) => code);
    expect(refused).toBe(status.PERMISSION_DENIED);
  });
});
