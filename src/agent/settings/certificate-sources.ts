import { join } from 'node:path';
import { NAMES } from '../certificate/files.ts';

/** Where Istio's agents expect the socket of a provider such as SPIRE; a setting may name another file. */
const PROVIDERS = 'var/run/secrets/workload-spiffe-uds';
/** Where certificates may be mounted. The second is that of `FILE_MOUNTED_CERTS`. */
const [WORKLOAD, MOUNTED] = ['var/run/secrets/workload-spiffe-credentials', 'etc/certs'] as const;

export interface CertificateSources {
  readonly provider: string | undefined;
  readonly mounted: string | undefined;
  /** What is mounted and not used, and why. */
  readonly unused: readonly string[];
}

/**
 * Who gives this workload its certificate, if not the control plane: the first of these, as for Istio's agent. This agent
 * puts nothing where it looks for them.
 */
export function certificateSources({
  socketName,
  isExpected,
  written,
  at,
  readFile,
  isSocket,
}: {
  /** Of the provider's socket, if that is certain to be there; empty: unknown. */
  readonly socketName: string;
  /** Whether certificates are mounted in any case. */
  readonly isExpected: boolean;
  /** Where this agent writes its own certificate to. */
  readonly written: string | undefined;
  readonly at: (path: string) => string;
  readonly readFile: (path: string) => string | undefined;
  readonly isSocket: (path: string) => boolean;
}): CertificateSources {
  const isNamed = socketName !== '' && socketName !== 'socket';
  const socket = at(join(PROVIDERS, isNamed ? socketName : 'socket'));
  const provider = isNamed || isSocket(socket) ? socket : undefined;
  const unused: string[] = [];
  for (const directory of [at(WORKLOAD), at(MOUNTED)].filter((each) => each !== written)) {
    const missing = Object.values(NAMES).filter((name) => readFile(join(directory, name)) === undefined);
    const mounted = missing.length === 0 || (isExpected && directory === at(MOUNTED)) ? directory : undefined;
    if (mounted !== undefined) return { provider, mounted, unused };
    if (missing.length < Object.values(NAMES).length)
      unused.push(`certificate in ${directory}, which lacks ${missing.join(' and ')}`);
  }
  return { provider, mounted: undefined, unused };
}
