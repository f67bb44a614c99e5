import type { Member } from '../mesh/resources/members.ts';
import { typeUrl } from '../envoy/encode/proto.ts';
import { types } from '../envoy/encode/proto-types.ts';
import { contentHash } from '../model/hash.ts';
import type { Credential } from '../model/credential.ts';

/**
 * The lines of a recording: inputs of the graph as they were, and which resources they made; then commit by commit what
 * was written, and which resources changed.
 */
export type Line =
  | { readonly kind: 'recording'; readonly format: typeof FORMAT; readonly version: string; readonly at: string }
  | ({ readonly kind: 'input' } & RecordedWrite)
  | { readonly kind: 'resource'; readonly resource: RecordedResource }
  | { readonly kind: 'begin'; readonly commit: number }
  | {
      readonly kind: 'commit';
      readonly commit: number;
      readonly at: string;
      readonly writes: readonly RecordedWrite[];
      readonly resources: readonly RecordedResource[];
    }
  | { readonly kind: 'end'; readonly reason: string };

export const FORMAT = 1;

export interface RecordedWrite {
  readonly input: string;
  readonly key: string;
  /** Absent: the key was deleted. */
  readonly value?: unknown;
}

/** Place (list, type, name and qualifier) and version; without a version it was removed. */
export type RecordedResource = readonly [place: string, version?: string];

/** Recordings have no private keys, so the bytes of Secrets are not those that were sent: only their names count. */
export function recordedResource({ list, qualifier, resource }: Member, isThere: boolean): RecordedResource {
  const place = `${list} ${resource.typeUrl} ${resource.name}${qualifier === '' ? '' : ` ${qualifier}`}`;
  if (!isThere) return [place];
  return [place, resource.typeUrl === typeUrl(types.secret) ? 'not recorded' : resource.version];
}

/** A write without private keys: a hash tells where one was replaced by another. */
export function recordedWrite(input: string, key: string, value: unknown): RecordedWrite {
  if (value === undefined) return { input, key };
  return { input, key, value: input === 'credentials' ? withoutKey(value as Credential) : value };
}

function withoutKey(credential: Credential): Credential {
  const { content } = credential.pair;
  if (content === undefined) return credential;
  const key = `not recorded; its hash is ${contentHash(content.key)}`;
  return { ...credential, pair: { ...credential.pair, content: { ...content, key } } };
}
