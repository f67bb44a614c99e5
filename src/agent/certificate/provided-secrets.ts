import { Client, Metadata, type ServerDuplexStream, credentials } from '@grpc/grpc-js';
import { grpcStatus } from '../../base/grpc-status.ts';
import type { AgentLog } from '../log.ts';
import { readDeltaRequest, readRequest } from '../xds/messages.ts';
import { PassThrough } from '../xds/pass-through.ts';
import { type SecretService, isOwnSecret } from './secret-server.ts';

type Call = ServerDuplexStream<Buffer, Buffer>;

/**
 * Secrets for Envoy, of which the workload's own come from the provider at this socket, as it sends them: streams that ask
 * for these are passed on. Files come from `own`.
 */
export function providedSecrets([methods, own]: SecretService, socket: string, log: AgentLog): SecretService {
  const dial = () => ({
    // Without keepalive: gRPC for Go ends connections that ping more often than every five minutes.
    client: new Client(`unix:${socket}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
      'grpc.enable_retries': 0,
      'grpc.enable_http_proxy': 0,
      'grpc.service_config_disable_resolution': 1,
    }),
    metadata: new Metadata(),
  });
  const serve = (method: keyof typeof own, read: typeof readRequest): ((call: Call) => void) => {
    const to = `the provider of certificates at ${socket}`;
    const provider = new PassThrough({ method: methods[method].path, to, dial, log });
    return (call) =>
      call.once('data', (first: Buffer) => {
        try {
          const { names } = read(first);
          if (names.length > 0 && names.every(isOwnSecret)) provider.serve(call);
          else own[method](call);
        } catch (error) {
          call.emit('error', grpcStatus(3, String(error)));
          return;
        }
        call.emit('data', first);
      });
  };
  return [
    methods,
    { StreamSecrets: serve('StreamSecrets', readRequest), DeltaSecrets: serve('DeltaSecrets', readDeltaRequest) },
  ];
}
