import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SERVER, secureCluster, startSecure, tokenOf } from '../features/secure-cluster.ts';
import { TOKEN_REVIEWS } from '../features/sources.ts';
import { withPeers } from '../peers/with-peers.ts';
import { type AgentProcess, startFairleadAgent } from './fairlead-agent.ts';

/** Where the machine keeps its certificate, below the agent's root. */
const CERTIFICATES = 'etc/certs';

const read = ({ root }: AgentProcess, file: string) => readFileSync(join(root, CERTIFICATES, file), 'utf8');

withPeers(['envoy'], 'the agent on a virtual machine', () => {
  test('it needs a token for its first certificate only, which then proves who it is', async () => {
    const made = await secureCluster();
    const { program, roots } = await startSecure(made);
    const setup = {
      port: program.serving.ports.secure!,
      server: SERVER,
      roots,
      token: tokenOf('shop:machine'),
      namespace: 'shop',
      account: 'machine',
      env: { PROV_CERT: CERTIFICATES, OUTPUT_CERTS: CERTIFICATES },
    };
    const first = await startFairleadAgent(setup);
    await first.ready();
    const { serialNumber, subjectAltName } = new X509Certificate(read(first, 'cert-chain.pem'));
    expect(subjectAltName).toBe('URI:spiffe://cluster.local/ns/shop/sa/machine');
    expect(read(first, 'root-cert.pem')).toContain(roots.trim());
    expect(read(first, 'key.pem')).toContain('PRIVATE KEY');
    await first.process.stop();

    // From now on no token is good, and nothing is left of the first start but these files.
    made.server.cluster.virtual.set(TOKEN_REVIEWS, () => ({ status: { authenticated: false, error: 'expired' } }));
    rmSync(join(first.root, 'etc/istio/proxy'), { recursive: true });
    const again = await startFairleadAgent({ ...setup, token: '', root: first.root });
    await again.ready();
    const renewed = new X509Certificate(read(again, 'cert-chain.pem'));
    expect(renewed.subjectAltName).toBe(subjectAltName);
    expect(renewed.serialNumber).not.toBe(serialNumber);
    const status = await again.get(again.ports.status, '/status');
    expect(JSON.parse(status.body)).toMatchObject({ connected: true, certificate: 'valid' });
  });
});
