import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServerInterceptor,
  ServerInterceptingCall,
} from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import type { Call } from '../../src/ads/transport/frame-writer.ts';

export { framed } from './raw-ads.ts';

export const identity = (bytes: Buffer): Buffer => bytes;
export const PATH = '/s/m';

const METHOD = {
  path: PATH,
  requestStream: true,
  responseStream: true,
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
} as const;

const passThrough: ServerInterceptor = (_, call) => new ServerInterceptingCall(call);

/** With an interceptor, the call does not expose its HTTP/2 stream: messages go through the public API. */
export const ways: readonly [string, readonly ServerInterceptor[]][] = [
  ['past grpc-js', []],
  ['through grpc-js', [passThrough]],
];

/** A server whose only method streams bytes both ways, and its client; both end with the test. */
export async function serveBytes(
  interceptors: readonly ServerInterceptor[],
  handle: (call: Call) => void,
): Promise<{ readonly client: Client; readonly port: number }> {
  const server = new Server({ interceptors: [...interceptors] });
  server.addService({ m: METHOD }, { m: handle });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': -1,
  });
  onTestFinished(() => {
    client.close();
    server.forceShutdown();
  });
  return { client, port };
}
