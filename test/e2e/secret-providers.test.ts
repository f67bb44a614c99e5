import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { startEnvoy } from '../peers/envoy.ts';
import { createCa } from '../peers/mesh-ca.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { startAgent } from './agent.ts';
import { apply, startTestEngine } from './engine.ts';

/** A provider of secrets, whose certificates all say whose they are. */
async function startProvider(name: string, path?: string) {
  const provider = await startAgent(await (await createCa()).certify('provider', name), path);
  onTestFinished(() => provider.close());
  return provider;
}

const gateway = (name: string, port: number): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: ${name}, namespace: edge}
spec:
  selector: {app: ${name}}
  servers: [{port: {number: ${port}, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: "sds://site"}}]
`;

withPeers(['envoy'], 'a real Envoy as a router', () => {
  test('has secrets with sds:// from the provider in its Pod, or else from that of the mesh config', async () => {
    const stop = new AbortController();
    const directory = await mkdtemp(join(tmpdir(), 'fl-providers-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const sockets = join(directory, 'var/run/secrets/credential-uds');
    await mkdir(sockets, { recursive: true });
    const [vault, pod] = [await startProvider('vault'), await startProvider('pod', join(sockets, 'socket'))];
    const [ofVault = 0, ofPod = 0] = await freePorts(2);
    const engine = await startTestEngine(stop.signal);
    onTestFinished(async () => {
      stop.abort();
      await engine.ads.close();
    });
    apply(
      engine,
      [gateway('vault', ofVault), gateway('pod', ofPod), meshConfig, providerService(vault.port)].join('---'),
    );
    await engine.open();
    for (const [name, metadata] of [
      ['vault', {}],
      ['pod', { credential: 'true' }],
    ] as const) {
      const envoy = await startEnvoy({
        adsPort: engine.ads.port!,
        delta: true,
        cwd: directory,
        node: {
          id: `router~10.0.0.9~${name}-1.edge~edge.svc.cluster.local`,
          metadata: { NAMESPACE: 'edge', LABELS: { app: name }, ...metadata },
        },
      });
      onTestFinished(() => envoy.stop());
      await envoy.ready();
    }
    expect(await poll('the certificate of the mesh config', () => nameAt(ofVault))).toContain('/sa/vault');
    expect(await poll('the certificate of the Pod', () => nameAt(ofPod))).toContain('/sa/pod');
    expect([[...vault.asked], [...pod.asked]]).toEqual([['site'], ['sds://site']]);
  });
});

const meshConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "extensionProviders: [{name: vault, sds: {name: vault, service: vault.edge.svc.cluster.local, port: 8443}}]"}
`;

const providerService = (port: number): string => `
apiVersion: v1
kind: Service
metadata: {name: vault, namespace: edge}
spec: {clusterIP: 10.96.0.10, selector: {app: vault}, ports: [{name: grpc, port: 8443}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: vault, namespace: edge}
spec: {address: 127.0.0.1, ports: {grpc: ${port}}, labels: {app: vault}}
`;

/** Whose certificate a server presents; undefined if nobody answers. */
function nameAt(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, servername: 'a.example.com' }, () => {
      resolve(socket.getPeerCertificate().subjectaltname);
      socket.destroy();
    }).on('error', () => resolve(undefined));
  });
}
