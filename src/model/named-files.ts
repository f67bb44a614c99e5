import type { ServerTls } from './gateway.ts';
import type { ClientTls } from './traffic-policy.ts';

/**
 * Files that a client reads, in one text for each secret that they make: a certificate with its key, or authorities with
 * what these have revoked.
 */
export function clientFiles(tls: ClientTls): readonly string[] {
  if (tls.credentialName !== '' || (tls.mode !== 'SIMPLE' && tls.mode !== 'MUTUAL')) return [];
  const pair = tls.mode === 'MUTUAL' ? [tls.clientCertificate, tls.privateKey] : [];
  const roots = tls.insecureSkipVerify || tls.caCredentialName !== '' ? [] : [tls.caCertificates, tls.caCrl];
  return secretsOf([pair, roots]);
}

/** The same of a server. */
export function serverFiles({ mode, certificates, caCrl }: ServerTls): readonly string[] {
  const files = certificates.kind === 'files' ? certificates.files : [];
  const roots = certificates.kind === 'files' ? certificates.roots : '';
  const pairs = files.map(({ certificate, key }) => [certificate, key]);
  return secretsOf([...pairs, ...(mode === 'SIMPLE' ? [] : [[roots, caCrl]])]);
}

const secretsOf = (files: readonly (readonly string[])[]): readonly string[] =>
  files.filter((paths) => paths.some((path) => path !== '')).map((paths) => paths.join('~'));
