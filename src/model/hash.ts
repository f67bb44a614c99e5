import { hash } from 'node:crypto';

/** A short content hash: equal in every process, safe in keys and versions. */
export function contentHash(content: string | Uint8Array): string {
  return hash('sha1', content, 'base64url').slice(0, 22);
}

/** A small number for a text, to spread texts evenly: FNV-1a, 32 bits. */
export function spreadHash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}
