import { request as requestHttp, type IncomingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import protobuf from 'protobufjs/minimal.js';
import { isObject } from '../../api/json.ts';
import { AgentConfigError } from '../proxy-config.ts';

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
  const timeout = (typeof timeoutSeconds === 'number' && timeoutSeconds > 0 ? timeoutSeconds : 1) * 1000;
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

/** Where the application is, from here. */
export interface AppAddress {
  /** Of the Pod: the application may listen there only. */
  readonly host: string;
  /** The rules of interception let connections from here pass. Undefined: there are none. */
  readonly from: string | undefined;
}

/** What the application answers. Never rejects. */
export async function runProbe(probe: AppProbe, app: AppAddress, headers: IncomingHttpHeaders): Promise<ProbeAnswer> {
  try {
    switch (probe.kind) {
      case 'http':
        return await askHttp(probe, app, headers);
      case 'tcp':
        await openTcp(probe, app);
        return { status: 200, body: '' };
      case 'grpc': {
        const status = await askGrpc(probe, app);
        return status === SERVING ? { status: 200, body: '' } : { status: 500, body: `gRPC health status ${status}\n` };
      }
    }
  } catch (error) {
    return { status: 500, body: `${error instanceof Error ? error.message : String(error)}\n` };
  }
}

const local = ({ from }: AppAddress): object => (from === undefined ? {} : { localAddress: from });

function askHttp(
  { port, path, tls, headers, timeout }: Extract<AppProbe, { kind: 'http' }>,
  app: AppAddress,
  incoming: IncomingHttpHeaders,
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
  const options = { host: app.host, port, path, agent: false as const, headers: sent, ...local(app) };
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
        if (body.length < MAX_BODY) body = (body + chunk).slice(0, MAX_BODY);
      });
      response.on('end', () => resolve({ status, body }));
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

function openTcp({ port, timeout }: AppProbe, app: AppAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: app.host, port, ...local(app) });
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

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
const SERVING = 1;

/** `grpc.health.v1.Health/Check`. By hand: gRPC's client cannot choose the address that it calls from. */
function askGrpc({ port, service, timeout }: Extract<AppProbe, { kind: 'grpc' }>, app: AppAddress): Promise<number> {
  const message =
    service === '' ? Buffer.alloc(0) : Buffer.from(protobuf.Writer.create().uint32(10).string(service).finish());
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, 5);
  return new Promise((resolve, reject) => {
    const host = app.host.includes(':') ? `[${app.host}]` : app.host;
    const session = connectHttp2(`http://${host}:${port}`, {
      createConnection: () => connect({ host: app.host, port, ...local(app) }),
    });
    const end = (error?: Error): void => {
      clearTimeout(timer);
      session.destroy();
      if (error !== undefined) reject(error);
    };
    const timer = setTimeout(() => end(new Error('the application does not answer')), timeout);
    session.on('error', end);
    const call = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let answer = Buffer.alloc(0);
    let problem = '';
    const read = (headers: Readonly<Record<string, unknown>>): void => {
      const status = headers['grpc-status'];
      if (status !== undefined && status !== '0')
        problem = `gRPC status ${String(status)}: ${String(headers['grpc-message'] ?? '')}`;
    };
    call.on('response', read).on('trailers', read);
    call.on('data', (chunk: Buffer) => {
      if (answer.length < MAX_BODY) answer = Buffer.concat([answer, chunk]);
    });
    call.on('error', end);
    call.on('end', () => {
      try {
        if (problem !== '' || answer.length < 5) return end(new Error(problem || 'the answer is not gRPC'));
        const status = statusOf(answer.subarray(5));
        end();
        resolve(status);
      } catch (error) {
        end(error as Error);
      }
    });
    call.end(frame);
  });
}

/** `status` 1. */
function statusOf(message: Uint8Array): number {
  const reader = protobuf.Reader.create(message);
  let status = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 8) status = reader.int32();
    else reader.skipType(tag & 7);
  }
  return status;
}
