import {
  type Client,
  type Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
} from '@grpc/grpc-js';

export const ECHO = '/test.Echo/Say';

const identity = (bytes: Buffer): Buffer => bytes;

/** A gRPC server. */
export interface EchoServer {
  readonly port: number;
  stop(): void;
}

export function echoMethod(path = ECHO) {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  } as const;
}

/** Answers every call with its name. */
export const sayName =
  (name: string) =>
  (_: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>): void =>
    callback(null, Buffer.from(name));

export async function startEcho(name: string, host = '127.0.0.1', path = ECHO): Promise<EchoServer> {
  const server = new Server();
  server.addService({ say: echoMethod(path) }, { say: sayName(name) });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${host}:0`, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { port, stop: () => server.forceShutdown() };
}

/** Calls it; rejects with gRPC's error. */
export function callEcho(client: Client, metadata?: Metadata, path = ECHO): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + 10_000 };
    const done = (error: unknown, answer?: Buffer): void => {
      // gRPC's errors are Errors.
      if (error instanceof Error) reject(error);
      else resolve(answer?.toString() ?? '');
    };
    if (metadata === undefined) client.makeUnaryRequest(path, identity, identity, Buffer.alloc(0), options, done);
    else client.makeUnaryRequest(path, identity, identity, Buffer.alloc(0), metadata, options, done);
  });
}
