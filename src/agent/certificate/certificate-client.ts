import type { ServiceError } from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';
import { eachField } from '../xds/messages.ts';
import { type ControlPlaneOptions, NotDialed, bytes, dial } from '../xds/dial.ts';

/** Source: istio/api security/v1alpha1/ca.proto. */
const METHOD = '/istio.v1.auth.IstioCertificateService/CreateCertificate';

/** Milliseconds. The control plane may have to ask the API server about the token. */
const DEADLINE = 20_000;

/** A chain: the certificate, its intermediates, and last the roots. PEM. Rejects with what the authority says. */
export async function requestCertificate(
  authority: ControlPlaneOptions,
  csr: string,
  seconds: number,
  { signal, signer = '' }: { readonly signal: AbortSignal; readonly signer?: string },
): Promise<readonly string[]> {
  signal.throwIfAborted();
  // Without a token, nobody would sign it.
  if (authority.tls === undefined)
    throw new NotDialed(
      `no certificates without TLS, which ${authority.address} does not have: set CA_ADDR to the address with port 15012`,
    );
  const { client, metadata } = dial(authority);
  let cancel = (): void => {};
  try {
    const answer = await new Promise<Buffer>((resolve, reject) => {
      const call = client.makeUnaryRequest(
        METHOD,
        bytes,
        bytes,
        writeRequest(csr, seconds, signer),
        metadata,
        { deadline: Date.now() + DEADLINE },
        (error: ServiceError | null, value?: Buffer) =>
          error === null && value !== undefined ? resolve(value) : reject(error ?? new Error('no answer')),
      );
      cancel = () => call.cancel();
      signal.addEventListener('abort', cancel, { once: true });
    });
    const chain = readChain(answer);
    if (chain.length < 2)
      throw new Error(`the authority answered with ${chain.length} certificates instead of a chain`);
    return chain;
  } finally {
    // The signal outlives the call, and would keep it.
    signal.removeEventListener('abort', cancel);
    client.close();
  }
}

/** `csr` 1, `validity_duration` 3 (seconds; 0: the authority's default), `metadata` 4: a Struct with `CertSigner`. */
function writeRequest(csr: string, seconds: number, signer: string): Buffer {
  const writer = protobuf.Writer.create().uint32(10).string(csr).uint32(24).int64(seconds);
  // Struct.fields 1: an entry with key 1 and value 2, a Value with string_value 3.
  const entry = writer.uint32(34).fork().uint32(10).fork().uint32(10).string('CertSigner');
  return Buffer.from(entry.uint32(18).fork().uint32(26).string(signer).ldelim().ldelim().ldelim().finish());
}

/** `cert_chain` 1. */
function readChain(message: Uint8Array): string[] {
  const chain: string[] = [];
  eachField(message, (field, reader) => {
    if (field !== 1) return false;
    chain.push(reader.string());
    return true;
  });
  return chain;
}
