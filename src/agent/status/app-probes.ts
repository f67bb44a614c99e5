import { request as requestHttp, type IncomingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';
import { isObject } from '../../api/json.ts';
import { AgentConfigError } from '../settings/config-fields.ts';
import { type AppAddress, local } from './app-address.ts';
import { SERVING, askGrpc } from './grpc-health.ts';

/** A probe or a handler of a container, which the injector has moved here. The kubelet asks by its path. */
export type AppProbe = { readonly timeout: number } & (
  | {
      readonly kind: 'http';
      readonly port: number;
      readonly path: string;
      readonly tls: boolean;
      readonly headers: Headers;
    }
  | { readonly kind: 'tcp'; readonly port: number }
  | { readonly kind: 'grpc'; readonly port: number; readonly service: string }
);

type Headers = readonly (readonly [name: string, value: string])[];

export interface ProbeAnswer {
  readonly status: number;
  readonly body: string;
}

/** Of a timeout: timers end at 24 days. */
const LONGEST_SECONDS = 3_600;

/** Bytes of a body that are passed on. The kubelet shows even less. */
const MAX_BODY = 10_240;

/**
 * The value of `ISTIO_KUBE_APP_PROBERS`: JSON, by path, such as `/app-health/reviews/readyz`. Throws
 * {@link AgentConfigError}.
 */
export function readAppProbes(text: string): ReadonlyMap<string, AppProbe> {
  if (text.trim() === '') return new Map();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Below.
  }
  if (!isObject(value)) throw new AgentConfigError('ISTIO_KUBE_APP_PROBERS must be a JSON object');
  return new Map(
    Object.entries(value).map(([path, probe]) => {
      const read = readProbe(isObject(probe) ? probe : {});
      if (read === undefined)
        throw new AgentConfigError(
          `ISTIO_KUBE_APP_PROBERS ${path} must have httpGet, tcpSocket or grpc with a port number`,
        );
      return [path, read];
    }),
  );
}

function readProbe({
  httpGet,
  tcpSocket,
  grpc,
  timeoutSeconds,
}: Readonly<Record<string, unknown>>): AppProbe | undefined {
  const seconds = typeof timeoutSeconds === 'number' && timeoutSeconds > 0 ? timeoutSeconds : 1;
  const timeout = Math.min(seconds, LONGEST_SECONDS) * 1000;
  const text = (value: unknown, fallback = ''): string =>
    typeof value === 'string' && value !== '' ? value : fallback;
  for (const handler of [httpGet, tcpSocket, grpc]) {
    if (!isObject(handler)) continue;
    const port = Number(handler['port']);
    if (!Number.isInteger(port) || port < 1 || port > 65_535) return undefined;
    if (handler === tcpSocket) return { timeout, kind: 'tcp', port };
    if (handler === grpc) return { timeout, kind: 'grpc', port, service: text(handler['service']) };
    const headers = Array.isArray(handler['httpHeaders']) ? handler['httpHeaders'].filter(isObject) : [];
    return {
      timeout,
      kind: 'http',
      port,
      path: text(handler['path'], '/'),
      tls: text(handler['scheme']).toUpperCase() === 'HTTPS',
      headers: headers.map(({ name, value }) => [text(name), text(value)] as const),
    };
  }
  return undefined;
}

/** Whoever asks. The signal fires when it is gone. */
export interface ProbeCaller {
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;
}

/** What the application answers. Never rejects. */
export async function runProbe(probe: AppProbe, app: AppAddress, caller: ProbeCaller): Promise<ProbeAnswer> {
  try {
    switch (probe.kind) {
      case 'http':
        return await askHttp(probe, app, caller);
      case 'tcp':
        await openTcp(probe, app, caller);
        return { status: 200, body: '' };
      case 'grpc': {
        const status = await askGrpc(probe, app, caller);
        return status === SERVING ? { status: 200, body: '' } : { status: 500, body: `gRPC health status ${status}\n` };
      }
    }
  } catch (error) {
    return { status: 500, body: `${error instanceof Error ? error.message : String(error)}\n` };
  }
}

function askHttp(
  { port, path, tls, headers, timeout }: Extract<AppProbe, { kind: 'http' }>,
  app: AppAddress,
  { headers: incoming, signal }: ProbeCaller,
): Promise<ProbeAnswer> {
  const sent: Record<string, string | string[]> = {};
  // The kubelet's own, with the address that it would have asked.
  for (const [name, value] of Object.entries(incoming))
    if (value !== undefined && !['host', 'connection', 'content-length', 'transfer-encoding'].includes(name))
      sent[name] = value;
  for (const [name, value] of headers) if (name !== '') sent[name.toLowerCase()] = value;
  const host = app.host.includes(':') ? `[${app.host}]` : app.host;
  sent['host'] ??= `${host}:${port}`;
  sent['connection'] = 'close';
  const options = { host: app.host, port, path, agent: false as const, headers: sent, signal, ...local(app) };
  return new Promise((resolve, reject) => {
    // The kubelet does not verify certificates, either.
    const request = tls ? requestHttps({ ...options, rejectUnauthorized: false }) : requestHttp(options);
    const timer = setTimeout(() => request.destroy(new Error('the application does not answer')), timeout);
    request.on('close', () => clearTimeout(timer));
    request.on('error', reject);
    request.on('response', (response) => {
      const { statusCode = 500, headers: got } = response;
      // Where a redirect leads elsewhere, the kubelet is content.
      const status = statusCode >= 300 && statusCode < 400 && leadsElsewhere(got.location, app.host) ? 200 : statusCode;
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body = (body + chunk).slice(0, MAX_BODY);
        if (body.length < MAX_BODY) return;
        // The kubelet does not wait for the rest, either.
        resolve({ status, body });
        request.destroy();
      });
      response.on('end', () => resolve({ status, body }));
      response.on('close', () => reject(new Error('the application closed the connection within its answer')));
    });
    request.end();
  });
}

function leadsElsewhere(location: string | undefined, host: string): boolean {
  try {
    return location !== undefined && new URL(location).hostname.replace(/^\[|\]$/g, '') !== host;
  } catch {
    return false;
  }
}

function openTcp({ port, timeout }: AppProbe, app: AppAddress, { signal }: ProbeCaller): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: app.host, port, signal, ...local(app) });
    const timer = setTimeout(
      () => socket.destroy(new Error('the application does not accept the connection')),
      timeout,
    );
    socket.on('connect', () => {
      resolve();
      socket.destroy();
    });
    socket.on('error', reject).on('close', () => clearTimeout(timer));
  });
}
