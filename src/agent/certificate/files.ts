import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Certificate } from './verdict.ts';

/** The names that Istio's agent gives them. */
export const NAMES = { chain: 'cert-chain.pem', key: 'key.pem', roots: 'root-cert.pem' } as const;

/** Undefined unless all three are there. */
export function readCertificate(directory: string): Certificate | undefined {
  const text = (name: string): string | undefined => readText(join(directory, name));
  const [chain, key, roots] = [text(NAMES.chain), text(NAMES.key), text(NAMES.roots)];
  return chain === undefined || key === undefined || roots === undefined ? undefined : { chain, key, roots };
}

/**
 * Only this user can read the key, unless other containers of the Pod use it. Throws if the directory cannot be written
 * to.
 */
export function writeCertificate(directory: string, certificate: Certificate, isShared = false): void {
  mkdirSync(directory, { recursive: true, mode: isShared ? 0o755 : 0o700 });
  const mode = isShared ? 0o644 : 0o600;
  const parts = (['key', 'chain', 'roots'] as const).map((part) => [join(directory, NAMES[part]), certificate[part]]);
  try {
    for (const [path, text = ''] of parts) writeFileSync(`${path}.new`, text, { mode, flush: true });
  } catch (error) {
    // A full disk leaves the former ones as they are.
    for (const [path] of parts) rmSync(`${path}.new`, { force: true });
    throw error;
  }
  for (const [path = ''] of parts) renameSync(`${path}.new`, path);
}

/** Bytes of the largest file that is read. The roots of a system take 200 KiB. */
export const LARGEST = 4 * 1024 * 1024;

/**
 * A file of the agent's own; for what others name, see {@link WatchedFiles}. Undefined if there is no such file, it is
 * empty, too large, or not a plain file.
 */
export function readText(path: string): string | undefined {
  try {
    const found = statSync(path);
    if (!found.isFile() || found.size === 0 || found.size > LARGEST) return undefined;
    const text = readFileSync(path, 'utf8').trim();
    return text === '' ? undefined : `${text}\n`;
  } catch {
    return undefined;
  }
}
