import { matchesText, textMatch } from '../model/authorization.ts';

/** Stands for the mesh's own trust domain, whatever that is. */
const localDomain = 'cluster.local';

/**
 * Principals in each of the mesh's trust domains: a workload has its identity in the one under which its certificate
 * was signed. A principal of another trust domain, or without one, is only itself.
 */
export function trustedPrincipals(principals: readonly string[], domains: readonly string[]): readonly string[] {
  return principals.flatMap((principal) => {
    const [domain = '', ...rest] = principal.split('/');
    if (rest.length !== 4 || domain === '*') return [principal];
    if (domain !== localDomain && !domains.some((own) => overlaps(domain, own))) return [principal];
    const inEach = domains.map((own) => {
      const keeps = domain.startsWith('*') && own.endsWith(domain.slice(1));
      return keeps ? principal : [own, ...rest].join('/');
    });
    return [...new Set(inEach)];
  });
}

/** The aliases of a trust domain mean the same. */
export function trustedDomains(values: readonly string[], domains: readonly string[]): readonly string[] {
  return [...new Set(values.flatMap((value) => (domains.includes(value) ? domains : [value])))];
}

/** Whether one of them, which may have a * at one end, matches the other. */
function overlaps(a: string, b: string): boolean {
  return matches(a, b) || matches(b, a);
}

function matches(pattern: string, text: string): boolean {
  return matchesText(textMatch(pattern), text);
}
