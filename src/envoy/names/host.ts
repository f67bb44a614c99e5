import protobuf from 'protobufjs/minimal.js';
import type { EncodedResource } from '../../ads/store/resource.ts';
import { addressBytes } from '../../model/cidr.ts';
import { HOST, HOST_FIELDS, type NamedHost } from '../../model/named-host.ts';
import { leaf, resource } from '../encode/resource.ts';

/** `Host`: the addresses of one host, which is the name of the resource. */
export function hostResource({ host, addresses, shortName }: NamedHost): EncodedResource {
  const all = addresses.map((address) => Uint8Array.from(addressBytes(address)));
  const writer = protobuf.Writer.create();
  for (const [field, size] of [
    [HOST_FIELDS.v4, 4],
    [HOST_FIELDS.v6, 16],
  ] as const) {
    const ofFamily = all.filter(({ length }) => length === size);
    if (ofFamily.length > 0) writer.uint32((field << 3) | 2).bytes(Buffer.concat(ofFamily));
  }
  if (shortName !== '') writer.uint32(HOST_FIELDS.isShort << 3).bool(true);
  return resource(HOST, host, leaf(new Uint8Array(writer.finish()), []));
}

/** The table itself, which an agent has even if there are no hosts: without a name. */
export const hostTable = (): EncodedResource => resource(HOST, '', leaf(new Uint8Array(), []));
