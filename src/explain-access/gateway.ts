import type { AccessQuestion } from '../cli/program.ts';
import { UsageError } from '../cli/usage-error.ts';
import type { GatewayChain } from '../model/gateway.ts';
import { type GatewayAccess, type GatewayRequest, chainOf, isTls } from '../judge/gateway.ts';
import { identityOf, partsOf } from './request.ts';

/** The request to a router, and what is assumed about it. */
export function gatewayRequestOf(
  question: AccessQuestion,
  access: GatewayAccess,
  { ip, trustDomain }: { readonly ip: string | undefined; readonly trustDomain: string },
  remarks: string[],
): GatewayRequest {
  const port = listenerPortOf(question.port, access, remarks);
  const peer = identityOf(question, trustDomain);
  const request = { peer, port, ...partsOf(question, access.issuers, ip) };
  const listener = access.listeners.find((one) => one.port === port);
  if (listener === undefined) return request;
  if (!['0.0.0.0', '::'].includes(listener.address)) remarks.push(`port ${port} is open at ${listener.address} only`);
  const chain = chainOf(listener, request);
  if (chain !== undefined && !('unknown' in chain)) remarks.push(...assumptionsAbout(chain, request));
  return request;
}

/** `--port` is one that the router opens, or one of a Service in front of it. */
function listenerPortOf(
  asked: number | undefined,
  { listeners, servicePorts }: GatewayAccess,
  remarks: string[],
): number {
  const open = [...new Set(listeners.map(({ port }) => port))].filter((port) => port > 0);
  if (asked === undefined && open.length !== 1) {
    const which =
      open.length === 0 ? 'no server of a Gateway opens a port of the workload' : `it opens ${open.join(', ')}`;
    throw new UsageError(`specify --port: ${which}`);
  }
  const target = servicePorts.find((ports) => (ports[asked ?? 0] ?? 0) > 0)?.[asked ?? 0];
  const port = asked === undefined ? open[0]! : open.includes(asked) ? asked : (target ?? asked);
  if (asked !== undefined && port !== asked)
    remarks.push(`port ${asked} of the Service in front of the gateway is port ${port} of the workload`);
  const addresses = listeners.filter((one) => one.port === port).map(({ address }) => address);
  if (addresses.length > 1)
    throw new UsageError(
      `--port: ${port} is open separately at ${addresses.join(', ')}; requests to such a port cannot be explained`,
    );
  return port;
}

function assumptionsAbout(
  chain: GatewayChain,
  { port, peer, http }: Pick<GatewayRequest, 'port' | 'peer' | 'http'>,
): readonly string[] {
  const { tls } = chain;
  const remarks: string[] = [];
  if (isTls(chain)) {
    const name = typeof http.host === 'string' ? ', with the server name that --host gives' : '';
    remarks.push(`assuming a TLS handshake${name}: port ${port} closes connections in plaintext`);
  }
  if (tls?.certificates.kind === 'credentials')
    remarks.push(`assuming that the gateway has the certificates in ${tls.certificates.names.join(', ')}`);
  if (peer === undefined) return remarks;
  if (tls === undefined || tls.mode === 'SIMPLE')
    remarks.push(`the server on port ${port} does not ask for client certificates, so the request has no identity`);
  else if (tls.certificates.kind !== 'mesh')
    remarks.push(`assuming a client certificate for ${peer} that the server accepts: its authority is not the mesh's`);
  return remarks;
}
