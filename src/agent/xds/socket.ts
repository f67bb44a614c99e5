import { chmodSync, rmSync } from 'node:fs';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { AgentConfigError } from '../settings/config-fields.ts';
import { bytes } from './dial.ts';

/** A method whose messages both ways are bytes. */
export const streamOfBytes = {
  requestStream: true,
  responseStream: true,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
} as const;

/** Listens on a socket in place of one that a former process has left. Unless it is shared, only this user can use it. */
export async function listenOnSocket(server: Server, path: string, isShared = false): Promise<void> {
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(new AgentConfigError(`cannot listen on ${path}: ${error.message}`)),
    ),
  );
  chmodSync(path, isShared ? 0o666 : 0o600);
}
