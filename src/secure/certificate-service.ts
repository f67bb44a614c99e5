import protobuf from 'protobufjs/minimal.js';
import type { UnaryService } from '../ads/transport/server-options.ts';
import type { PeerIdentity } from '../ads/types.ts';

/** Signs what a caller may have; never rejects. */
export type Sign = (
  csr: string,
  identity: PeerIdentity,
  seconds: number,
) => Promise<
  | { readonly chain: readonly string[] }
  | { readonly code: 'INVALID_ARGUMENT' | 'UNAVAILABLE' | 'INTERNAL'; readonly message: string }
>;

/**
 * The service by which Istio's agents have their certificates signed: `istio.v1.auth.IstioCertificateService`. Source:
 * istio/api security/v1alpha1/ca.proto.
 */
export function certificateService(sign: Sign): UnaryService {
  return {
    path: '/istio.v1.auth.IstioCertificateService/CreateCertificate',
    async call(bytes, identity) {
      const request = readRequest(bytes);
      if (request === undefined) return { code: 'INVALID_ARGUMENT', message: 'the request cannot be read' };
      if (request.impersonates)
        return { code: 'PERMISSION_DENIED', message: 'certificates are signed for the caller only' };
      const result = await sign(request.csr, identity, request.seconds);
      return 'chain' in result ? { response: writeResponse(result.chain) } : result;
    },
  };
}

interface CertificateRequest {
  readonly csr: string;
  readonly seconds: number;
  readonly impersonates: boolean;
}

/** `csr` 1, `validity_duration` 3, `metadata` 4; undefined if the bytes are not such a message. */
function readRequest(bytes: Uint8Array): CertificateRequest | undefined {
  const reader = protobuf.Reader.create(bytes);
  let [csr, seconds, impersonates] = ['', 0, false];
  try {
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      switch (tag) {
        case (1 << 3) | 2:
          csr = reader.string();
          break;
        case (3 << 3) | 0:
          seconds = Number(reader.int64());
          break;
        case (4 << 3) | 2:
          // A Struct. Only this one key of it would matter: it is for ztunnel.
          impersonates = Buffer.from(reader.bytes()).includes('ImpersonatedIdentity');
          break;
        default:
          reader.skipType(tag & 7);
      }
    }
  } catch {
    return undefined;
  }
  return { csr, seconds, impersonates };
}

/** `cert_chain` 1: the certificate, each intermediate, and last the roots. */
function writeResponse(chain: readonly string[]): Uint8Array {
  const writer = protobuf.Writer.create();
  for (const certificate of chain) writer.uint32((1 << 3) | 2).string(certificate);
  return writer.finish();
}
