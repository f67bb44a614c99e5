import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import protobuf from 'protobufjs/minimal.js';
import { type AppAddress, local } from './app-address.ts';

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
export const SERVING = 1;

/** Bytes; an answer has seven. */
const MAX_ANSWER = 1_024;

/** `grpc.health.v1.Health/Check`; the status. By hand: gRPC's client cannot choose the address that it calls from. */
export function askGrpc(
  { port, service, timeout }: { readonly port: number; readonly service: string; readonly timeout: number },
  app: AppAddress,
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
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
    const call = session.request(
      {
        ':method': 'POST',
        ':path': '/grpc.health.v1.Health/Check',
        'content-type': 'application/grpc',
        te: 'trailers',
      },
      { signal },
    );
    let answer = Buffer.alloc(0);
    let problem = '';
    const read = (headers: Readonly<Record<string, unknown>>): void => {
      const status = headers['grpc-status'];
      if (status !== undefined && status !== '0')
        problem = `gRPC status ${String(status)}: ${decoded(String(headers['grpc-message'] ?? ''))}`;
    };
    call.on('response', read).on('trailers', read);
    call.on('data', (chunk: Buffer) => {
      if (answer.length < MAX_ANSWER) answer = Buffer.concat([answer, chunk]);
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

/** Messages are percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
