import protobuf from 'protobufjs/minimal.js';

/** Envoy's `Secret`s, encoded. Source: extensions/transport_sockets/tls/v3/{secret,common}.proto. PEM in. */
export const SECRET = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret';

/** `name` 1, `tls_certificate` 2 with `certificate_chain` 1 and `private_key` 2. */
export function keyPair(name: string, { chain, key }: { readonly chain: string; readonly key: string }): Uint8Array {
  const writer = protobuf.Writer.create().uint32(10).string(name).uint32(18).fork();
  inline(writer.uint32(10), chain);
  return inline(writer.uint32(18), key).ldelim().finish();
}

/** `name` 1, `validation_context` 4 with `trusted_ca` 1 and `crl` 7. */
export function roots(name: string, pem: string, crl?: string): Uint8Array {
  const writer = protobuf.Writer.create().uint32(10).string(name).uint32(34).fork();
  inline(writer.uint32(10), pem);
  if (crl !== undefined) inline(writer.uint32(58), crl);
  return writer.ldelim().finish();
}

/** DataSource: `inline_bytes` 2. */
const inline = (writer: protobuf.Writer, text: string): protobuf.Writer =>
  writer.fork().uint32(18).bytes(Buffer.from(text)).ldelim();
