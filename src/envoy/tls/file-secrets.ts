import type { ServerTls } from '../../model/gateway.ts';
import type { Traits } from '../../model/traits.ts';
import type { DataSource, Secret } from '../gen/types.gen.ts';

/**
 * Secrets with file names, never file contents, for what no agent brings: all files if there is none, or else
 * authorities with what they have revoked. If a listener names a file that cannot be read, Envoy rejects the listener,
 * with everybody's servers on that port. With a secret, handshakes fail only for the servers that name it.
 */
export function fileSecretsOf(
  { mode, certificates, caCrl }: ServerTls,
  { agent }: Pick<Traits, 'agent'>,
): readonly Secret[] {
  if (certificates.kind !== 'files') return [];
  const files = agent ? [] : certificates.files;
  const pairs = files.map(({ certificate, key }): Secret => ({
    name: pairName(certificate, key),
    tlsCertificate: { certificateChain: file(certificate), privateKey: file(key), ...watched([certificate, key]) },
  }));
  if (mode === 'SIMPLE' || (agent && caCrl === '')) return pairs;
  const { roots } = certificates;
  return [
    ...pairs,
    {
      name: rootsName(roots, caCrl),
      validationContext: {
        trustedCa: file(roots),
        ...(caCrl === '' ? {} : { crl: file(caCrl) }),
        ...watched(caCrl === '' ? [roots] : [roots, caCrl]),
      },
    },
  ];
}

/** The name of the secret for a certificate and its key. Other files have other names. */
export function pairName(certificate: string, key: string): string {
  return `file-cert:${escaped(certificate)}~${escaped(key)}`;
}

/** The name of the secret for the client authorities, and for what these have revoked. */
export function rootsName(roots: string, caCrl: string): string {
  return `file-root:${escaped(roots)}${caCrl === '' ? '' : `~${escaped(caCrl)}`}`;
}

function escaped(path: string): string {
  return path.replaceAll('%', '%25').replaceAll('~', '%7E');
}

function file(filename: string): DataSource {
  return { filename };
}

/** Mounted Secrets change through a link beside the files. Envoy notices only if told to watch the directory. */
function watched(paths: readonly string[]): { readonly watchedDirectory?: { readonly path: string } } {
  const [first = '', ...others] = paths.map((path) => path.slice(0, Math.max(path.lastIndexOf('/'), 0)));
  return first !== '' && others.every((directory) => directory === first) ? { watchedDirectory: { path: first } } : {};
}
