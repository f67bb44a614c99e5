import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { spiffeId } from '../../identity/spiffe.ts';
import { certificateAuthority } from '../control-plane.ts';
import type { AgentLog } from '../log.ts';
import type { AgentSettings } from '../settings/settings.ts';
import { requestCertificate } from './certificate-client.ts';
import { readCertificate, writeCertificate } from './files.ts';
import { rootsProblem } from './verdict.ts';
import { WorkloadCertificate } from './workload-certificate.ts';

/** The certificate of this workload: signed by the control plane, kept in a file for a restart. */
export function ownCertificate(
  settings: AgentSettings,
  clock: Clock,
  log: AgentLog,
  signal: AbortSignal,
): WorkloadCertificate {
  const { pod, trustDomain, paths, env, proxy } = settings;
  const saved = join(paths.state, 'certificate');
  const certificate = new WorkloadCertificate({
    identity: spiffeId(trustDomain, pod.namespace, pod.serviceAccount),
    trusted: proxy.caCertificates.filter((pem, at) => {
      const problem = rootsProblem(pem);
      if (problem !== undefined) log.warn('Roots are left out', { field: `caCertificatesPem[${at}]`, reason: problem });
      return problem === undefined;
    }),
    sign: (csr) =>
      requestCertificate(certificateAuthority(settings), csr, settings.certificateLife, {
        signal,
        signer: env['ISTIO_META_CERT_SIGNER'] ?? '',
      }),
    save(signed) {
      for (const directory of [saved, paths.outputCertificates])
        if (directory !== undefined)
          try {
            writeCertificate(directory, signed, directory !== saved && settings.grpcBootstrapFile !== undefined);
          } catch (error) {
            log.warn('The certificate is not saved for a restart', { directory, reason: String(error) });
          }
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
