import type { ForwardToBackends, RequestMatch, RouteRule } from '../model/route.ts';

/**
 * The rules as far as gRPC's own clients can follow them. What they do not look at would match anything, so such a match
 * is left out. Calls fail that would be redirected, or answered by the proxy. A mirror would be a cluster that nobody
 * asks for.
 */
export function rulesForGrpc(rules: readonly RouteRule[]): readonly RouteRule[] {
  return rules.map(({ cors: _, headers: __, action, matches, ...rest }): RouteRule => {
    const left = matches.filter(canMatch).map(withoutMethod);
    return {
      ...rest,
      // Without any rule, its VirtualService would leave the calls to the service.
      matches: left.length === 0 && matches.length > 0 ? [noCall] : left,
      action: action.kind === 'forward' ? { ...action, mirrors: [] } : nowhere,
    };
  });
}

/** Calls have paths of the form `/package.Service/Method`. */
const noCall: RequestMatch = {
  ...{ name: '', statPrefix: '', ignoreUriCase: false, headers: [], claims: [], queryParams: [] },
  uri: { kind: 'exact', value: '/' },
};

const nowhere: ForwardToBackends = {
  kind: 'forward',
  backends: [{ target: { kind: 'invalid', reason: 'host' } }],
  mirrors: [],
  retriesStay: false,
};

/** gRPC has no query parameters, and nothing verifies tokens; all calls are POSTs, and their scheme is hidden. */
function canMatch({ queryParams, claims, scheme, authority, method }: RequestMatch): boolean {
  if (queryParams.length > 0 || claims.some(({ invert }) => !invert)) return false;
  if (scheme !== undefined || authority !== undefined) return false;
  switch (method?.kind) {
    case 'exact':
      return method.value === 'POST';
    case 'prefix':
      return 'POST'.startsWith(method.value);
    case 'regex':
      return false;
    default:
      return true;
  }
}

function withoutMethod({ method: _, ...match }: RequestMatch): RequestMatch {
  return { ...match, claims: [] };
}
