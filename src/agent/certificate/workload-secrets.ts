import { X509Certificate } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { AgentPaths } from '../settings/settings.ts';
import { readText } from './files.ts';
import { keyPair, roots } from './secrets.ts';
import type { Secrets } from './secret-server.ts';

/** PEM. */
interface Source {
  readonly current: { readonly chain: string; readonly key: string } | undefined;
  readonly roots: string;
  onChange(listener: () => void): () => void;
}

/** Where a system has its roots. */
const SYSTEM_ROOTS: readonly string[] = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/cert.pem',
];

/** Where a Pod has the revocation list of the mesh: beside the roots. */
export const crlFile = ({ roots: file }: Pick<AgentPaths, 'roots'>): string => join(dirname(file), 'crl/ca-crl.pem');

/** Milliseconds between looks at files that Envoy was given: those of a mounted Secret change. */
const EVERY = 5_000;

/**
 * What Envoy asks the agent for: `default` and `ROOTCA`, the workload's own; and files, as the control plane names them:
 * `file-cert:CHAIN~KEY`, `file-root:PATH`.
 */
export function workloadSecrets(own: Source, crl: string, signal: AbortSignal): Secrets {
  const listeners = new Set<() => void>();
  own.onChange(() => listeners.forEach((listener) => listener()));
  const timer = setInterval(() => listeners.forEach((listener) => listener()), EVERY);
  timer.unref();
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  return {
    get(name) {
      if (name === 'default') return own.current && keyPair(name, own.current);
      if (name === 'ROOTCA') return own.roots === '' ? undefined : roots(name, own.roots, readText(crl));
      if (name.startsWith('file-cert:')) {
        const [chain, key] = name.slice('file-cert:'.length).split('~').map(readText);
        return chain === undefined || key === undefined ? undefined : keyPair(name, { chain, key });
      }
      if (name.startsWith('file-root:')) {
        const path = name.slice('file-root:'.length);
        const pem = path === 'system' ? SYSTEM_ROOTS.map(readText).find((text) => text !== undefined) : readText(path);
        return pem === undefined ? undefined : roots(name, readable(pem));
      }
      throw new Error(`there is no secret with the name ${name}`);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Without the certificates that cannot be read: Envoy would reject all of them. */
function readable(pem: string): string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.filter(isCertificate).join('\n');
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem) !== undefined;
  } catch {
    return false;
  }
}
