import type { ListenerSettings } from '../model/mesh-config.ts';

/**
 * The path that policies compare, and that the workload gets: what Envoy makes of one with `normalize_path`,
 * `merge_slashes` and `path_with_escaped_slashes_action`.
 */
export function normalizedPath(path: string, mode: ListenerSettings['pathNormalization']): string {
  if (mode === 'NONE') return path;
  const [, before = '', query = ''] = /^([^?#]*)(.*)$/s.exec(path) ?? [];
  const unescaped =
    mode === 'DECODE_AND_MERGE_SLASHES' ? before.replaceAll(/%2f/gi, '/').replaceAll(/%5c/gi, '\\') : before;
  const canonical = withoutDots(
    unescaped
      // `..;a` is `..` to some servers. Written with escapes, it is not.
      .replaceAll(/(?<=\/)(\.\.?);[^/]*/g, '$1')
      .replaceAll('\\', '/')
      .replaceAll(/%[0-9a-f]{2}/gi, decoded)
      .replaceAll(/[^\x21-\x7e]|["<>^`{|}]/gu, encodeURIComponent),
  );
  return (mode === 'BASE' ? canonical : withoutDoubleSlashes(canonical)) + query;
}

/** Characters that mean the same in either form. */
function decoded(escape: string): string {
  const character = String.fromCharCode(parseInt(escape.slice(1), 16));
  return /[-A-Za-z0-9_.~]/.test(character) ? character : escape;
}

/** Of slashes alone, Envoy keeps two. Source: its path_utility.cc. */
function withoutDoubleSlashes(path: string): string {
  return /^\/{2,}$/.test(path) ? '//' : path.replaceAll(/\/{2,}/g, '/');
}

/** RFC 3986, section 5.2.4. */
function withoutDots(path: string): string {
  const segments: string[] = [];
  const all = path.split('/').slice(1);
  all.forEach((segment, i) => {
    const isLast = i === all.length - 1;
    if (segment === '.' || segment === '..') {
      if (segment === '..') segments.pop();
      if (isLast) segments.push('');
    } else segments.push(segment);
  });
  return `/${segments.join('/')}`;
}
