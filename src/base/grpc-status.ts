import { Metadata } from '@grpc/grpc-js';

/** How a call ends, in the form that grpc-js takes. */
export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

/**
 * A status whose text Envoy's log shows as it is. grpc-js would encode spaces and quotes, too: gRPC does not ask for that,
 * and Envoy does not undo it. Source: "Percent-Encoded" in gRPC's PROTOCOL-HTTP2.md.
 */
export function grpcStatus(code: number, text: string): GrpcStatus {
  const details = text.toWellFormed();
  const metadata = new Metadata();
  metadata.set('grpc-message', details.replace(/[^ -$&-~]+/g, encodeURIComponent));
  return { code, details, metadata };
}
