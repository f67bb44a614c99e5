import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { spiffeId } from '../../identity/spiffe.ts';
import { certificateAuthority } from '../control-plane.ts';
import type { AgentLog } from '../log.ts';
import type { AgentSettings } from '../settings/settings.ts';
import { requestCertificate } from './certificate-client.ts';
import { type CertificateSource, fromProvider } from './certificate-source.ts';
import { readCertificate, writeCertificate } from './files.ts';
import { MountedCertificate } from './mounted-certificate.ts';
import { type Certificate, rootsProblem } from './verdict.ts';
import { WorkloadCertificate } from './workload-certificate.ts';

/** The certificate of this workload, from wherever its settings say. */
export function ownCertificate(
  settings: AgentSettings,
  clock: Clock,
  log: AgentLog,
  signal: AbortSignal,
): CertificateSource {
  const { paths, proxy } = settings;
  const { secretProvider: provider, mountedCertificates: directory, outputCertificates: output } = paths;
  if (provider !== undefined) {
    log.info('Certificates come from the provider at this socket', { provider });
    if (output !== undefined) log.warn('No certificate is written: it is with the provider', { directory: output });
    return fromProvider;
  }
  const trusted = proxy.caCertificates.filter((pem, at) => {
    const problem = rootsProblem(pem);
    if (problem !== undefined) log.warn('Roots are left out', { field: `caCertificatesPem[${at}]`, reason: problem });
    return problem === undefined;
  });
  const write = (to: string, certificate: Certificate): void => {
    try {
      writeCertificate(to, certificate, to === output && settings.grpcBootstrapFile !== undefined);
    } catch (error) {
      log.warn('The certificate is not saved for a restart', { directory: to, reason: String(error) });
    }
  };
  if (directory === undefined) return signedCertificate(settings, { trusted, write, clock, log, signal });
  const save = (certificate: Certificate): void => {
    if (output !== undefined) write(output, certificate);
  };
  return new MountedCertificate({ directory, trusted, save, log, signal });
}

/** Signed by the control plane, kept in a file for a restart. */
function signedCertificate(
  settings: AgentSettings,
  { trusted, write, clock, log, signal }: SigningOptions,
): WorkloadCertificate {
  const { pod, trustDomain, paths, env } = settings;
  const saved = join(paths.state, 'certificate');
  const certificate = new WorkloadCertificate({
    identity: spiffeId(trustDomain, pod.namespace, pod.serviceAccount),
    trusted,
    sign: (csr) =>
      requestCertificate(certificateAuthority(settings), csr, settings.certificateLife, {
        signal,
        signer: env['ISTIO_META_CERT_SIGNER'] ?? '',
      }),
    save(signed) {
      for (const directory of [saved, paths.outputCertificates]) if (directory !== undefined) write(directory, signed);
    },
    renewAfter: settings.renewAfter,
    clock,
    random: Math.random,
    log,
    signal,
  });
  const former = readCertificate(saved);
  if (former !== undefined) certificate.resume(former);
  return certificate;
}

interface SigningOptions {
  readonly trusted: readonly string[];
  readonly write: (directory: string, certificate: Certificate) => void;
  readonly clock: Clock;
  readonly log: AgentLog;
  readonly signal: AbortSignal;
}
