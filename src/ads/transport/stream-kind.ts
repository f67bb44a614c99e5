import type { ContentHasher } from '../store/content-hash.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';
import { type DiscoveryRequest, readDeltaRequest, readRequest } from '../wire/wire-read.ts';

/** One of few: streams of a kind share what does not depend on the client. */
export interface StreamKind {
  readonly delta: boolean;
  /** Absent: all types (ADS). */
  readonly only?: ResourceType;
}

/** Of all types, those that clients may request on such a stream. */
export function typesOf({ only }: StreamKind, all: ResourceTypes): ResourceTypes {
  return only === undefined ? all : [only];
}

/** Reads the requests of such a stream. Where there is only one type, clients may leave it out. */
export function requestReader(
  { delta, only }: StreamKind,
  hasher: ContentHasher,
): (bytes: Uint8Array) => DiscoveryRequest {
  const read = delta ? readDeltaRequest : readRequest;
  return (bytes) => {
    const request = read(bytes, hasher);
    return only === undefined || request.typeUrl !== '' ? request : { ...request, typeUrl: only.typeUrl };
  };
}
