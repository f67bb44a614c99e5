import protobuf from 'protobufjs/minimal.js';

/** An entry of a name table, as Istio's message has it. */
export interface NameInfo {
  readonly ips: readonly string[];
  readonly registry: string;
  readonly shortname?: string;
  readonly namespace?: string;
}

/** Reads a `NameTable`: by host, in alphabetical order. */
export function readNameTable(bytes: Uint8Array): Record<string, NameInfo> {
  const found: [string, NameInfo][] = [];
  fields(bytes, {
    1: (entry) => {
      let host = '';
      let info: Uint8Array = new Uint8Array();
      fields(entry, { 1: (key) => (host = text(key)), 2: (value) => (info = value) });
      found.push([host, readInfo(info)]);
    },
  });
  return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function readInfo(bytes: Uint8Array): NameInfo {
  const ips: string[] = [];
  const texts: Record<string, string> = {};
  fields(bytes, {
    1: (ip) => ips.push(text(ip)),
    2: (registry) => (texts['registry'] = text(registry)),
    3: (shortname) => (texts['shortname'] = text(shortname)),
    4: (namespace) => (texts['namespace'] = text(namespace)),
  });
  return { ips, registry: '', ...texts };
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/** Fields of a message that has only bytes; throws on another one. */
function fields(bytes: Uint8Array, handlers: Readonly<Record<number, (value: Uint8Array) => unknown>>): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) handlers[reader.uint32() >>> 3]!(reader.bytes());
}
