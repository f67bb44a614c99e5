import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newKey } from '../../src/agent/certificate/key.ts';
import { Authority } from '../../src/identity/authority.ts';
import { readRequest } from '../../src/identity/certificate-request.ts';
import { type SelfSignedEntries, selfSigned } from '../../src/identity/self-signed.ts';
import { readMaterial } from '../../src/identity/signing-material.ts';

/** Name of the control plane, in its certificate and for proxies. */
export const SERVER = 'fairlead.istio-system.svc';

/** What a workload has of the mesh's authority, and the name of whom it talks to on the secure port. PEM. */
export interface WorkloadCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly roots: string;
  readonly name: string;
}

/** The authority of a mesh, and what it signs for service accounts. */
export interface MeshCa {
  /** As a control plane reads them, in Secrets and in a directory. */
  readonly entries: Readonly<Record<string, string>>;
  /**
   * The `tls` of an Envoy that proves to be of this account.
   * @param domain if the account is of another trust domain.
   */
  certify(namespace: string, account: string, domain?: string): Promise<WorkloadCertificate>;
}

export async function createCa(trustDomain = 'cluster.local'): Promise<MeshCa> {
  return caOf(await selfSigned(trustDomain, new Date()), trustDomain);
}

/**
 * Settings of a control plane that has the secure port alone, as its chart installs it, and the authority that it signs
 * with. It presents a certificate once it has logged `Signing certificates`.
 * @param directory for the authority.
 */
export async function securePortIn(directory: string) {
  const ca = await createCa();
  await mkdir(directory, { recursive: true });
  for (const [name, text] of Object.entries(ca.entries)) await writeFile(join(directory, name), text);
  return { ca, settings: { grpcAddress: 'off', caDirectory: directory, secureNames: SERVER } };
}

/** @param entries of the Secret `istio-ca-secret`. */
export function caOf(entries: SelfSignedEntries, trustDomain = 'cluster.local'): MeshCa {
  const read = readMaterial(entries, new Date());
  if ('problem' in read) throw new Error(read.problem);
  const authority = new Authority(read.material);
  return {
    entries,
    async certify(namespace, account, domain = trustDomain) {
      const identity = `spiffe://${domain}/ns/${namespace}/sa/${account}`;
      const { key, csr } = await newKey(identity);
      const request = await readRequest(csr, identity);
      if ('problem' in request) throw new Error(request.problem);
      const signed = await authority.sign(request.request, identity, 3600, new Date());
      if ('problem' in signed) throw new Error(signed.problem);
      return { certificate: signed.chain[0]!, key, roots: entries['root-cert.pem'], name: SERVER };
    },
  };
}
