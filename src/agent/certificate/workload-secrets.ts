import { dirname, join } from 'node:path';
import type { AgentLog } from '../log.ts';
import type { AgentPaths } from '../settings/settings.ts';
import type { Secrets, WatchedSecret } from './secret-server.ts';
import { keyPair, roots } from './secrets.ts';
import { type FileContent, type FileWatch, WatchedFiles, isContent } from './watched-files.ts';

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

export interface WorkloadSecrets extends Secrets {
  /** Looks at the files now, not only from time to time. Resolves when it has. */
  look(): Promise<void>;
}

/**
 * What Envoy asks the agent for: `default` and `ROOTCA`, the workload's own; and files, as the control plane names them:
 * `file-cert:CHAIN~KEY`, `file-root:PATH`.
 */
export function workloadSecrets(
  own: Source,
  crl: string,
  log: Pick<AgentLog, 'warn'>,
  signal: AbortSignal,
): WorkloadSecrets {
  const listeners = new Set<() => void>();
  const changed = (): void => listeners.forEach((listener) => listener());
  own.onChange(changed);
  // Kept apart, so that files which objects name never stand in the way of the workload's own.
  const [ownFiles, namedFiles] = [new WatchedFiles(signal), new WatchedFiles(signal)];
  const revoked = ownFiles.watch(crl, changed);
  let [list, refused] = [undefined as string | undefined, ''];
  /** The last one that was read: without it, revoked certificates would be accepted. */
  const revocationList = (): string | undefined => {
    const { state } = revoked;
    if (typeof state === 'string' || isContent(state))
      [list, refused] = [isContent(state) ? state.text : undefined, ''];
    else if (state.refused !== refused) {
      refused = state.refused;
      const what = list === undefined ? 'there is none' : 'the last one stays';
      log.warn(`The revocation list is not read; ${what}`, { reason: refused });
    }
    return list;
  };
  const ownSecret = (onChange: () => void, current: () => WatchedSecret['current']): WatchedSecret => {
    const listener = (): void => onChange();
    listeners.add(listener);
    return {
      get current() {
        return current();
      },
      close: () => listeners.delete(listener),
    };
  };
  return {
    watch(name, onChange) {
      if (name === 'default')
        return ownSecret(onChange, () => {
          const pair = own.current;
          return pair && { parts: [pair.chain, pair.key], encode: () => keyPair(name, pair) };
        });
      if (name === 'ROOTCA')
        return ownSecret(onChange, () => {
          const { roots: pem } = own;
          if (pem === '' || revoked.state === 'unknown') return undefined;
          const crl = revocationList();
          return { parts: [pem, crl ?? ''], encode: () => roots(name, pem, crl) };
        });
      if (name.startsWith('file-cert:')) {
        const paths = name.slice('file-cert:'.length).split('~');
        if (paths.length !== 2) throw new Error(`${name} does not name a certificate and its key`);
        return fileSecret(namedFiles, paths, onChange, (files) => {
          const [chain, key] = files.map(contentOf);
          if (chain === undefined || key === undefined) return undefined;
          return {
            parts: [chain.text, key.text],
            encode: () => keyPair(name, { chain: chain.text, key: key.text }),
          };
        });
      }
      if (name.startsWith('file-root:')) {
        const path = name.slice('file-root:'.length);
        return fileSecret(namedFiles, path === 'system' ? SYSTEM_ROOTS : [path], onChange, (files) => {
          const content = firstOf(files);
          return content && { parts: [content.roots], encode: () => roots(name, content.roots) };
        });
      }
      throw new Error(`there is no secret with the name ${name}`);
    },
    look: async () => void (await Promise.all([ownFiles.look(), namedFiles.look()])),
  };
}

/** Throws if one of the files is never read. */
function fileSecret(
  files: WatchedFiles,
  paths: readonly string[],
  onChange: () => void,
  secretOf: (watches: readonly FileWatch[]) => WatchedSecret['current'],
): WatchedSecret {
  const watches: FileWatch[] = [];
  const close = (): void => watches.forEach((watch) => watch.close());
  try {
    for (const path of paths) watches.push(files.watch(path, onChange));
  } catch (error) {
    close();
    throw error;
  }
  return {
    get current() {
      return secretOf(watches);
    },
    close,
  };
}

/** Undefined if there is no such file, or not yet. Throws if it is one that is not read. */
function contentOf({ state }: FileWatch): FileContent | undefined {
  if (typeof state === 'string') return undefined;
  if ('refused' in state) throw new Error(state.refused);
  return state;
}

/** Of the first file that there is. */
function firstOf(watches: readonly FileWatch[]): FileContent | undefined {
  for (const watch of watches) {
    if (watch.state === 'unknown') return undefined;
    const content = contentOf(watch);
    if (content !== undefined) return content;
  }
  return undefined;
}
