import { zstdCompressSync } from 'node:zlib';
import protobuf from 'protobufjs/minimal.js';
import type { SliceEndpoint, SlicePort } from '../api/core.ts';
import type { MeshCluster } from './names.ts';

/** An EndpointSlice, as other clusters are to have it. */
export interface WrittenSlice {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly addressType: string;
  readonly endpoints: readonly SliceEndpoint[];
  readonly ports: readonly SlicePort[];
}

/** As Cilium's own exporter writes it: equal slices are equal bytes. See {@link WireSlice} for the fields. */
export function encodeSlice(
  { namespace, name, labels, addressType, endpoints, ports }: WrittenSlice,
  cluster: Pick<MeshCluster, 'name' | 'id'>,
): Buffer {
  const writer = protobuf.Writer.create();
  text(writer, 1, cluster.name);
  writer.uint32(2 << 3).uint32(cluster.id);
  text(writer, 3, namespace);
  text(writer, 4, name);
  for (const [key, value] of Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
    message(writer, 5, (entry) => {
      text(entry, 1, key);
      text(entry, 2, value);
    });
  text(writer, 7, addressType);
  for (const endpoint of endpoints) message(writer, 8, (inner) => writeEndpoint(inner, endpoint));
  for (const port of ports) message(writer, 9, (inner) => writePort(inner, port));
  return zstdCompressSync(writer.finish());
}

/** Pods are named nowhere: readers know them by address. */
function writeEndpoint(
  writer: protobuf.Writer,
  { addresses, conditions, hostname, nodeName, zone, hints }: SliceEndpoint,
): void {
  for (const address of addresses) text(writer, 1, address);
  if (conditions !== undefined)
    message(writer, 2, (inner) => {
      const { ready, serving, terminating } = conditions;
      for (const [index, value] of [ready, serving, terminating].entries())
        if (value != null) inner.uint32((index + 1) << 3).bool(value);
    });
  if (hostname) text(writer, 3, hostname);
  if (nodeName) text(writer, 6, nodeName);
  if (zone) text(writer, 7, zone);
  const zones = hints?.forZones ?? [];
  if (zones.length > 0)
    message(writer, 8, (inner) => {
      for (const { name } of zones) message(inner, 1, (forZone) => text(forZone, 1, name));
    });
}

function writePort(writer: protobuf.Writer, { name = '', protocol = 'TCP', port, appProtocol }: SlicePort): void {
  text(writer, 1, name);
  text(writer, 2, protocol);
  if (port !== undefined) writer.uint32(3 << 3).int32(port);
  if (appProtocol) text(writer, 4, appProtocol);
}

function text(writer: protobuf.Writer, field: number, value: string): void {
  writer.uint32((field << 3) | 2).string(value);
}

function message(writer: protobuf.Writer, field: number, write: (inner: protobuf.Writer) => void): void {
  writer.uint32((field << 3) | 2).fork();
  write(writer);
  writer.ldelim();
}
