import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server as GrpcServer, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import type { OnEnd } from '../../src/testing/on-end.ts';

/** Allows requests with the header `x-pass: yes`. */
export async function startHttpAuthorizer(onEnd: OnEnd): Promise<number> {
  const server = createServer({ keepAliveTimeout: 0 }, ({ headers }, response) => {
    const allowed = headers['x-pass'] === 'yes';
    response.writeHead(allowed ? 200 : 403, {
      'x-asked': `${headers['x-pass']} ${headers['x-secret']} ${headers['x-from']}`,
      'x-reason': 'no pass',
    });
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** Allows requests and connections of the account `client` in namespace `shop`. */
export async function startGrpcAuthorizer(onEnd: OnEnd): Promise<number> {
  const same = (bytes: Buffer): Buffer => bytes;
  const server = new GrpcServer();
  server.addService(
    {
      Check: {
        path: '/envoy.service.auth.v3.Authorization/Check',
        requestStream: false,
        responseStream: false,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    {
      Check: ({ request }: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>): void => {
        const allowed = request.includes('spiffe://cluster.local/ns/shop/sa/client');
        // CheckResponse, of which field 1 is a google.rpc.Status: an empty one, or code 7.
        done(null, Buffer.from(allowed ? [0x0a, 0x00] : [0x0a, 0x02, 0x08, 0x07]));
      },
    },
  );
  onEnd(() => server.forceShutdown());
  return new Promise((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    ),
  );
}
