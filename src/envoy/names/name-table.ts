import protobuf from 'protobufjs/minimal.js';
import type { EncodedResource, LeafPart, Part } from '../../ads/store/resource.ts';
import { NAME_TABLE, type NamedHost } from '../../model/named-host.ts';
import { leaf, node, resource } from '../encode/resource.ts';

/** Istio's `NameTable`: `table`, a map from host to `NameInfo`. Entries of a map are fields, so they can be joined. */
const TABLE = 1;
const KEY = 1;
const VALUE = 2;
/** Istio's `NameInfo`. */
const INFO = { ips: 1, registry: 2, shortname: 3, namespace: 4 };

/** Entries of a name table. */
export function tableEntries(hosts: readonly NamedHost[]): LeafPart {
  const writer = protobuf.Writer.create();
  for (const { host, addresses, registry, shortName, namespace } of hosts) {
    writer.uint32(bytesField(TABLE)).fork();
    writer.uint32(bytesField(KEY)).string(host);
    writer.uint32(bytesField(VALUE)).fork();
    for (const address of addresses) writer.uint32(bytesField(INFO.ips)).string(address);
    writer.uint32(bytesField(INFO.registry)).string(registry);
    if (shortName !== '') {
      writer.uint32(bytesField(INFO.shortname)).string(shortName);
      writer.uint32(bytesField(INFO.namespace)).string(namespace);
    }
    writer.ldelim().ldelim();
  }
  return leaf(new Uint8Array(writer.finish()), []);
}

/** The table has no name: there is one. */
export function nameTable(entries: readonly Part[]): EncodedResource {
  return resource(NAME_TABLE, '', node(entries));
}

const bytesField = (field: number): number => (field << 3) | 2;
