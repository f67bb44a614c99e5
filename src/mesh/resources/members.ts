import type { EncodedResource } from '../../ads/store/resource.ts';
import type { Collection, Emit } from '../../cache/graph.ts';
import { sameResource } from '../../envoy/encode/resource.ts';

/** A resource in a list. The ADS store is built from collections of members. */
export interface Member {
  readonly list: string;
  readonly qualifier: string;
  readonly resource: EncodedResource;
}

export type Members = Collection<Member>;

export function sameMember(a: Member, b: Member): boolean {
  return a.list === b.list && a.qualifier === b.qualifier && sameResource(a.resource, b.resource);
}

export function emitMember(emit: Emit<Member>, list: string, resource: EncodedResource, qualifier = ''): void {
  const type = resource.typeUrl.slice(resource.typeUrl.lastIndexOf('.') + 1);
  emit(`${list} ${type} ${resource.name}${qualifier === '' ? '' : ` ${qualifier}`}`, { list, qualifier, resource });
}
