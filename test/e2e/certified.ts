import { onTestFinished } from 'vitest';
import { Authority } from '../../src/identity/authority.ts';
import { readRequest } from '../../src/identity/certificate-request.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { readMaterial } from '../../src/identity/signing-material.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import type { WorkloadSecrets } from './agent.ts';

/** A CA, and what it signs for service accounts. */
export async function createCa(trustDomain = 'cluster.local', onEnd: OnEnd = onTestFinished) {
  const entries = await selfSigned(trustDomain, new Date());
  const read = readMaterial(entries, new Date());
  if ('problem' in read) throw new Error(read.problem);
  const authority = new Authority(read.material);
  /** @param domain if the account is of another trust domain. */
  const certify = async (namespace: string, account: string, domain = trustDomain): Promise<WorkloadSecrets> => {
    const openssl = new OpenSsl(onEnd);
    const identity = `spiffe://${domain}/ns/${namespace}/sa/${account}`;
    const request = await readRequest(openssl.request('ec -pkeyopt ec_paramgen_curve:P-256'), identity);
    if ('problem' in request) throw new Error(request.problem);
    const signed = await authority.sign(request.request, identity, 3600, new Date());
    if ('problem' in signed) throw new Error(signed.problem);
    return { certificate: signed.chain[0]!, key: openssl.read('request.key'), roots: entries['root-cert.pem'] };
  };
  return { entries, certify };
}
