import type { Delivery } from '../protocol/delivery.ts';
import type { EncodedResource } from '../store/resource.ts';

/** What a client is given of one type. */
export interface GivenType {
  readonly typeUrl: string;
  readonly resources: readonly EncodedResource[];
}

/**
 * What a client is subscribed to, as it is now in its world, names that do not exist included if they have an answer.
 * What it holds can be older: it is being sent, or was rejected.
 */
export function givenOf({ subscriptions, view }: Delivery): GivenType[] {
  return subscriptions.flatMap((subscription) => {
    if (subscription === undefined) return [];
    const { type, interest } = subscription;
    const { batches, missing } = interest.in(view);
    const resources = batches.flatMap(({ items }) => items.map(({ resource }) => resource));
    return [
      {
        typeUrl: type.typeUrl,
        resources: [...resources, ...missing.flatMap((name) => subscription.absent(name) ?? [])],
      },
    ];
  });
}
