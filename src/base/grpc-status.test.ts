import { once } from 'node:events';
import { connect } from 'node:http2';
import { Client, Server, ServerCredentials, credentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { grpcStatus } from './grpc-status.ts';

const PATH = '/test.Test/End';
const bytes = (value: Buffer): Buffer => value;

/** A server whose calls end with this text. */
async function serverSaying(text: string): Promise<string> {
  const server = new Server();
  onTestFinished(() => server.forceShutdown());
  const method = { path: PATH, requestStream: true, responseStream: true } as const;
  server.addService(
    {
      End: {
        ...method,
        requestSerialize: bytes,
        requestDeserialize: bytes,
        responseSerialize: bytes,
        responseDeserialize: bytes,
      },
    },
    { End: (call: { emit(event: string, status: object): void }) => call.emit('error', grpcStatus(14, text)) },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return `127.0.0.1:${port}`;
}

test.each([
  ['there are no roots at "/var/run"; is it mounted?', 'there are no roots at "/var/run"; is it mounted?'],
  ['100 % of\n10 €', '100 %25 of%0A10 %E2%82%AC'],
  ['half a character: \ud800', 'half a character: %EF%BF%BD'],
])('%j is on the wire as %j, and gRPC clients read the former', async (text, encoded) => {
  const address = await serverSaying(text);
  const session = connect(`http://${address}`);
  const client = new Client(address, credentials.createInsecure());
  onTestFinished(() => {
    session.destroy();
    client.close();
  });
  const raw = session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc', te: 'trailers' });
  const [headers] = (await once(raw, 'response')) as [Record<string, unknown>];
  expect(headers).toMatchObject({ 'grpc-status': '14', 'grpc-message': encoded });
  const [error] = (await once(client.makeBidiStreamRequest(PATH, bytes, bytes), 'error')) as [{ details: string }];
  expect(error.details).toBe(text.toWellFormed());
});
