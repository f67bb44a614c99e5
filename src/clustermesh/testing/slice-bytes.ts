import { zstdCompressSync } from 'node:zlib';
import protobuf from 'protobufjs/minimal.js';
import type { SliceEndpoint } from '../../api/core.ts';
import type { MeshCluster } from '../names.ts';
import type { RemoteSlice } from '../slice-value.ts';

/** As Cilium's exporter writes a slice. */
export function sliceBytes(slice: RemoteSlice, { name, id }: Pick<MeshCluster, 'name' | 'id'>): Buffer {
  const writer = protobuf.Writer.create();
  text(writer, 1, name);
  writer.uint32(2 << 3).uint32(id);
  text(writer, 3, slice.namespace);
  text(writer, 4, slice.name);
  for (const [key, value] of Object.entries(slice.labels))
    message(writer, 5, (entry) => {
      text(entry, 1, key);
      text(entry, 2, value);
    });
  text(writer, 7, slice.addressType);
  for (const endpoint of slice.endpoints) message(writer, 8, (inner) => writeEndpoint(inner, endpoint));
  for (const port of slice.ports)
    message(writer, 9, (inner) => {
      text(inner, 1, port.name);
      text(inner, 2, port.protocol);
      inner.uint32(3 << 3).int32(port.port);
    });
  return zstdCompressSync(writer.finish());
}

function writeEndpoint(writer: protobuf.Writer, endpoint: SliceEndpoint): void {
  for (const address of endpoint.addresses) text(writer, 1, address);
  const { ready, serving, terminating } = endpoint.conditions ?? {};
  if (endpoint.conditions !== undefined)
    message(writer, 2, (inner) => {
      for (const [index, value] of [ready, serving, terminating].entries())
        if (value != null) inner.uint32((index + 1) << 3).bool(value);
    });
  if (endpoint.hostname !== undefined) text(writer, 3, endpoint.hostname);
  if (endpoint.nodeName !== undefined) text(writer, 6, endpoint.nodeName);
  if (endpoint.zone !== undefined) {
    text(writer, 7, endpoint.zone);
    // Hints, which nothing reads: they must do no harm.
    const { zone } = endpoint;
    message(writer, 8, (hints) => message(hints, 1, (forZone) => text(forZone, 1, zone)));
  }
}

function text(writer: protobuf.Writer, field: number, value: string): void {
  writer.uint32((field << 3) | 2).string(value);
}

function message(writer: protobuf.Writer, field: number, write: (inner: protobuf.Writer) => void): void {
  writer.uint32((field << 3) | 2).fork();
  write(writer);
  writer.ldelim();
}
