import { Authority } from '../../src/identity/authority.ts';
import { readRequest } from '../../src/identity/certificate-request.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { readMaterial } from '../../src/identity/signing-material.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import type { WorkloadSecrets } from './agent.ts';

/** A CA, and what it signs for service accounts. */
export async function createCa() {
  const entries = await selfSigned('cluster.local', new Date());
  const read = readMaterial(entries, new Date());
  if ('problem' in read) throw new Error(read.problem);
  const authority = new Authority(read.material);
  const certify = async (
    namespace: string,
    account: string,
    trustDomain = 'cluster.local',
  ): Promise<WorkloadSecrets> => {
    const openssl = new OpenSsl();
    const identity = `spiffe://${trustDomain}/ns/${namespace}/sa/${account}`;
    const request = await readRequest(openssl.request('rsa:2048'), identity);
    if ('problem' in request) throw new Error(request.problem);
    const signed = await authority.sign(request.request, identity, 3600, new Date());
    if ('problem' in signed) throw new Error(signed.problem);
    return { certificate: signed.chain[0]!, key: openssl.read('request.key'), roots: entries['root-cert.pem'] };
  };
  return { entries, certify };
}
