import { Server, ServerCredentials, type ServerDuplexStream, type ServiceError } from '@grpc/grpc-js';
import type { Decoded, Message } from '../codec.ts';
import { range, watchKeys } from '../messages.ts';

type Asked<P> = P extends { readonly request: infer M } ? Decoded<M> : never;
type Answer<P> = P extends { readonly response: Message<infer _, infer In> } ? In : never;

/** What a test has an etcd say. Bytes are sent as they are. */
export interface FakeAnswers {
  range?(request: Asked<typeof range>): Answer<typeof range> | Buffer | Promise<Answer<typeof range> | Buffer>;
  /** Called with the first request of a stream. */
  watch?(request: Asked<typeof watchKeys>, stream: FakeWatch): void;
}

export interface FakeWatch {
  send(response: Answer<typeof watchKeys> | Buffer): void;
  end(error?: Partial<ServiceError>): void;
}

export interface FakeEtcd {
  readonly url: string;
  answers: FakeAnswers;
  stop(): void;
}

/** Something that speaks as an etcd never would. */
export async function startFakeEtcd(): Promise<FakeEtcd> {
  const server = new Server();
  const fake = { url: '', answers: {} as FakeAnswers, stop: () => server.forceShutdown() };
  const bytes = (value: Buffer): Buffer => value;
  const method = (path: string, isStream: boolean) => ({
    ...{ path, requestStream: isStream, responseStream: isStream },
    ...{ requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes },
  });
  server.addService(
    { range: method(range.path, false), watch: method(watchKeys.path, true) },
    {
      range(call: { request: Buffer }, callback: (error: Partial<ServiceError> | null, value?: Buffer) => void) {
        Promise.resolve(fake.answers.range?.(range.request.decode(call.request)) ?? {}).then(
          (answer) => callback(null, Buffer.isBuffer(answer) ? answer : range.response.encode(answer)),
          (error: Partial<ServiceError>) => callback(error),
        );
      },
      watch(call: ServerDuplexStream<Buffer, Buffer>) {
        call.on('error', () => undefined);
        call.once('data', (request: Buffer) =>
          fake.answers.watch?.(watchKeys.request.decode(request), {
            send: (value) => void call.write(Buffer.isBuffer(value) ? value : watchKeys.response.encode(value)),
            end: (error) => void (error === undefined ? call.end() : call.emit('error', error)),
          }),
        );
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  fake.url = `http://127.0.0.1:${port}`;
  return fake;
}
