import { Client, Metadata, credentials, status as Status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { onTestFinished } from 'vitest';
import type { SecureCall } from '../conformance/xds-client.ts';

/** How a client proves who it is. */
export interface Caller {
  readonly token?: string;
  readonly certificate?: { readonly chain: string; readonly key: string };
  /** The header `clusterid`. */
  readonly cluster?: string;
}

export function secureCall(roots: string, { token, certificate, cluster }: Caller, name: string): SecureCall {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  if (cluster !== undefined) metadata.set('clusterid', cluster);
  return {
    credentials: credentials.createSsl(
      Buffer.from(roots),
      certificate === undefined ? null : Buffer.from(certificate.key),
      certificate === undefined ? null : Buffer.from(certificate.chain),
    ),
    name,
    metadata,
  };
}

/** CreateCertificate; the chain, or how it is refused. */
export function signCertificate(
  port: number,
  { credentials: channel, metadata, name }: SecureCall,
  csr: string,
  seconds = 3600,
): Promise<string[] | string> {
  const client = new Client(`127.0.0.1:${port}`, channel, {
    'grpc.ssl_target_name_override': name,
    'grpc.use_local_subchannel_pool': 1,
  });
  onTestFinished(() => client.close());
  const request = protobuf.Writer.create().uint32(10).string(csr).uint32(24).int64(seconds).finish();
  return new Promise((resolve) =>
    client.makeUnaryRequest(
      '/istio.v1.auth.IstioCertificateService/CreateCertificate',
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes: Buffer) => {
        const reader = protobuf.Reader.create(bytes);
        const chain: string[] = [];
        while (reader.pos < reader.len) {
          reader.uint32();
          chain.push(reader.string());
        }
        return chain;
      },
      request,
      metadata,
      (error, chain) => resolve(error === null ? chain! : `${Status[error.code]}: ${error.details}`),
    ),
  );
}
