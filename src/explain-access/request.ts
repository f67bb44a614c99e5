import type { AccessQuestion } from '../cli/program.ts';
import { UsageError } from '../cli/usage-error.ts';
import type { JwtIssuer } from '../model/request-authentication.ts';
import { type WorkloadAccess, modeOf } from '../judge/judge.ts';
import type { AccessRequest, HttpRequest } from '../judge/request.ts';
import { claimedIssuer } from '../judge/verify-token.ts';

export function portOf(asked: number | undefined, { targets }: WorkloadAccess, remarks: string[]): number {
  const served = targets.map(({ port }) => port);
  if (asked === undefined) {
    if (served.length === 1) return served[0]!;
    const which = served.length === 0 ? 'no Service names a port of the workload' : `it serves ${served.join(', ')}`;
    throw new UsageError(`specify --port: ${which}`);
  }
  if (served.includes(asked)) return asked;
  const [behind, ...others] = targets.filter(({ services }) => services.some(({ port }) => port === asked));
  if (others.length > 0)
    throw new UsageError(
      `--port: ${asked} is a port of several Services; specify that of the workload: ${served.join(', ')}`,
    );
  if (behind !== undefined) {
    remarks.push(`port ${asked} of Service ${behind.services[0]!.host} is port ${behind.port} of the workload`);
    return behind.port;
  }
  remarks.push(`no Service targets port ${asked} of the workload`);
  return asked;
}

export function requestOf(
  question: AccessQuestion,
  access: WorkloadAccess,
  { port, ip, trustDomain }: { readonly port: number; readonly ip: string | undefined; readonly trustDomain: string },
  remarks: string[],
): AccessRequest {
  const asked = identityOf(question, trustDomain);
  const mode = modeOf(access, port);
  // Clients of the mesh know what the workload accepts.
  const peer = mode === 'DISABLE' ? undefined : asked;
  if (asked !== peer) remarks.push(`port ${port} does not accept mutual TLS, so the request has no identity`);
  const target = access.targets.find((one) => one.port === port);
  const { http, ...addresses } = partsOf(question, access.issuers, ip);
  return {
    peer,
    port,
    ...addresses,
    sni: peer === undefined ? '' : { unknown: 'the server name in the TLS handshake, which is not known' },
    http: target?.protocol === 'UDP' ? undefined : http,
  };
}

/** What is the same for every kind of proxy. */
export function partsOf(
  { sourceIp, method, path, host, headers, token }: AccessQuestion,
  issuers: readonly JwtIssuer[],
  ip: string | undefined,
): Pick<AccessRequest, 'sourceIp' | 'destinationIp'> & { readonly http: HttpRequest } {
  const request = { method, path, host: host ?? { unknown: 'the host, which --host specifies' }, headers };
  return {
    sourceIp: sourceIp ?? { unknown: 'the address of the client, which --source-ip specifies' },
    destinationIp: ip ?? { unknown: 'the address of the workload, which is not known' },
    http: withToken(request, token, issuers),
  };
}

/** SPIFFE ID of the client. */
export function identityOf({ from }: AccessQuestion, trustDomain: string): string | undefined {
  if (from === undefined || from.startsWith('spiffe://')) return from;
  const [namespace, name] = from.split('/');
  return `spiffe://${trustDomain}/ns/${namespace}/sa/${name}`;
}

/** Where the rule for its issuer expects it. */
function withToken(request: HttpRequest, token: string | undefined, issuers: readonly JwtIssuer[]): HttpRequest {
  if (token === undefined) return request;
  const issuer = claimedIssuer(token);
  const {
    fromHeaders = [],
    fromParams = [],
    fromCookies = [],
  } = issuers.find(({ rule }) => rule.issuer === issuer)?.rule ?? {};
  const withHeader = (name: string, value: string): HttpRequest => ({
    ...request,
    headers: [...request.headers, [name, value]],
  });
  if (fromHeaders[0] !== undefined) return withHeader(fromHeaders[0].name, fromHeaders[0].prefix + token);
  if (fromParams[0] !== undefined) {
    const param = `${encodeURIComponent(fromParams[0])}=${encodeURIComponent(token)}`;
    return { ...request, path: `${request.path}${request.path.includes('?') ? '&' : '?'}${param}` };
  }
  if (fromCookies[0] !== undefined) return withHeader('cookie', `${fromCookies[0]}=${token}`);
  return withHeader('authorization', `Bearer ${token}`);
}
