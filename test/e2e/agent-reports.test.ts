import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { HOST, startMesh } from './agent-mesh.ts';
import { type AgentProcess, startFairleadAgent } from './fairlead-agent.ts';
import { ask } from './traffic.ts';

withPeers(['envoy'], 'what Envoy reports', () => {
  test('goes to the collectors that a ProxyConfig names', async () => {
    const { setup, outbound } = await startMesh();
    const [statsd, zipkin] = [await startStatsd(), await startZipkin()];
    const server = await startFairleadAgent(setup('server'));
    const client = await startFairleadAgent({
      ...setup('client'),
      proxyConfig: {
        statsdUdpAddress: `localhost:${statsd.port}`,
        tracing: { zipkin: { address: `127.0.0.1:${zipkin.port}` } },
      },
      files: { 'etc/istio/pod/annotations': 'sidecar.istio.io/statsFlushInterval="100ms"\n' },
    });
    await Promise.all([server.ready(), client.ready()]);
    await expect.poll(() => statsd.received()).toContain('envoy.server.live:1|g');
    // One of a hundred is traced where nobody asks for more.
    await expect
      .poll(async () => {
        await Promise.all(Array.from({ length: 50 }, () => ask(outbound, HOST)));
        return zipkin.received();
      })
      .toContain('client.shop');
  });

  test('is given to workloads of the mesh on a port with mutual TLS', async () => {
    const { setup } = await startMesh();
    const [envoy = 0, merged = 0] = await freePorts(2);
    const agent = await startFairleadAgent({
      ...setup('server'),
      env: { ENVOY_SECURE_METRICS_PORT: `${envoy}`, ENVOY_SECURE_MERGED_METRICS_PORT: `${merged}` },
    });
    await agent.ready();
    expect(await askSecurely(agent, envoy, true)).toContain('envoy_server_live');
    const all = await askSecurely(agent, merged, true);
    expect(all).toContain('envoy_server_live');
    expect(all).toContain('istio_agent_connected 1');
    expect(await askSecurely(agent, envoy, false)).toMatch(/^error/);
  });
});

async function startStatsd() {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  const names = new Set<string>();
  socket.on('message', (message) =>
    message
      .toString()
      .split('\n')
      .forEach((line) => names.add(line)),
  );
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { port: socket.address().port, received: () => [...names] };
}

async function startZipkin() {
  const services = new Set<string>();
  const server = createServer((asked, answer) => {
    let body = '';
    asked.on('data', (chunk: Buffer) => (body += chunk.toString()));
    asked.on('end', () => {
      for (const span of JSON.parse(body) as { localEndpoint?: { serviceName?: string } }[])
        services.add(span.localEndpoint?.serviceName ?? '');
      answer.writeHead(202).end();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, received: () => [...services] };
}

/** What is answered, with the certificate of the workload itself or with none. */
function askSecurely({ root }: AgentProcess, port: number, proven: boolean): Promise<string> {
  const file = (name: string): Buffer => readFileSync(join(root, 'etc/istio/proxy/certificate', name));
  const identity = proven ? { cert: file('cert-chain.pem'), key: file('key.pem') } : {};
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path: '/stats/prometheus', ca: file('root-cert.pem'), ...identity };
    // A SPIFFE ID is not a host name.
    const asked = request({ ...options, checkServerIdentity: () => undefined }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve(body));
    });
    asked.on('error', (error) => resolve(`error: ${error.message}`));
    asked.end();
  });
}
