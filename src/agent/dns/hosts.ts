import protobuf from 'protobufjs/minimal.js';
import { HOST, HOST_FIELDS } from '../../model/named-host.ts';
import { type Resource, readDeltaResponse } from '../xds/messages.ts';
import type { OwnType } from '../xds/relay.ts';
import type { HostAddresses, HostChange, Names } from './names.ts';

/** Keeps the names as the control plane has them: host by host, so that a change costs no more than itself. */
export function hostsOfMesh(names: Pick<Names, 'apply'>): OwnType {
  const versions = new Map<string, string>();
  return {
    typeUrl: HOST,
    versions: () => versions,
    // A whole response, or nothing of it. Rejects if a part cannot be read.
    async receive(bytes) {
      const { resources, removed } = readDeltaResponse(bytes);
      const changes: HostChange[] = removed.map((name) => [name, undefined]);
      // The one without a name is the table itself.
      for (const resource of resources) if (resource.name !== '') changes.push([resource.name, readHost(resource)]);
      for (const { name, version } of resources) versions.set(name, version);
      for (const name of removed) versions.delete(name);
      names.apply(changes);
      return Promise.resolve();
    },
  };
}

function readHost({ name, value }: Resource): HostAddresses {
  let [v4, v6, isShort] = [NONE, NONE, false];
  const reader = protobuf.Reader.create(value);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const field = tag >>> 3;
    if (field === HOST_FIELDS.v4) v4 = own(reader.bytes());
    else if (field === HOST_FIELDS.v6) v6 = own(reader.bytes());
    else if (field === HOST_FIELDS.isShort) isShort = reader.bool();
    else reader.skipType(tag & 7);
  }
  if (v4.length % 4 !== 0 || v6.length % 16 !== 0) throw new Error(`${JSON.stringify(name)} has a part of an address`);
  return { v4, v6, isShort };
}

const NONE: Uint8Array = new Uint8Array();

/** Kept for long: not a part of a whole response. */
const own = (bytes: Uint8Array): Uint8Array => (bytes.length === 0 ? NONE : Uint8Array.from(bytes));
