import type { EncodedResource } from '../../ads/store/resource.ts';
import type { Collection, Emit } from '../../cache/graph.ts';
import type { Problem } from '../../api/problem.ts';
import { type SlotPatching, failedOf } from './patching.ts';
import { sameResource } from '../../envoy/encode/resource.ts';

/** A resource in a list. The ADS store is built from collections of members. */
export interface Member {
  readonly list: string;
  readonly qualifier: string;
  readonly resource: EncodedResource;
  /** What is wrong with patches for it; absent: nothing. */
  readonly failed?: readonly Problem[];
}

export type Members = Collection<Member>;

export function sameMember(a: Member, b: Member): boolean {
  return (
    a.list === b.list && a.qualifier === b.qualifier && a.failed === b.failed && sameResource(a.resource, b.resource)
  );
}

export function emitMember(
  emit: Emit<Member>,
  list: string,
  resource: EncodedResource,
  qualifier = '',
  patching?: SlotPatching,
): void {
  const type = resource.typeUrl.slice(resource.typeUrl.lastIndexOf('.') + 1);
  emit(`${list} ${type} ${resource.name}${qualifier === '' ? '' : ` ${qualifier}`}`, {
    list,
    qualifier,
    resource,
    ...(patching && failedOf(patching)),
  });
}
