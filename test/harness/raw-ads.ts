import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import protobuf from 'protobufjs';

/** ADS without a client library: for requests and streams that no well-behaved client produces. */

/** A protobuf field with text, bytes, or the fields of a message. */
export function field(number: number, ...content: readonly (string | Uint8Array)[]): Uint8Array {
  const bytes = Buffer.concat(content.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  return protobuf.Writer.create()
    .uint32(number * 8 + 2)
    .bytes(bytes)
    .finish();
}

/** A node with text metadata. */
export function nodeMessage(id: string, metadata: Readonly<Record<string, string>> = {}): Uint8Array {
  const members = Object.entries(metadata).map(([key, value]) => field(1, field(1, key), field(2, field(3, value))));
  return Buffer.concat([field(1, id), field(3, ...members)]);
}

/** The same node as a field of a delta request. */
export function nodeField(id: string, metadata: Readonly<Record<string, string>> = {}): Uint8Array {
  return field(1, nodeMessage(id, metadata));
}

/** The prefix that gRPC puts before a message of this length. */
export function framePrefix(length: number): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(length, 1);
  return prefix;
}

/** A message as gRPC puts it on the wire. */
export function framed(message: Uint8Array): Buffer {
  return Buffer.concat([framePrefix(message.length), message]);
}

export function openDeltaStream(session: ClientHttp2Session, headers?: OutgoingHttpHeaders): ClientHttp2Stream {
  return openAdsStream(session, true, headers);
}

export function openAdsStream(
  session: ClientHttp2Session,
  delta: boolean,
  headers: OutgoingHttpHeaders = {},
): ClientHttp2Stream {
  const method = delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources';
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    },
    { endStream: false },
  );
  stream.on('error', () => {});
  return stream;
}
