import type { Json } from './json.ts';

/** Where in the status of an object conditions stand. */
export type Place =
  /** `status.conditions`: those of the whole object. */
  | { readonly in: 'object' }
  /** An entry of `status.parents` of a route: what we say about one of the parents that it names. */
  | { readonly in: 'parents'; readonly ref: StatusReference }
  /** An entry of `status.ancestors` of a policy. */
  | { readonly in: 'ancestors'; readonly ref: StatusReference }
  /** An entry of `status.listeners`. `facts`: its fields besides the name and the conditions. */
  | { readonly in: 'listeners'; readonly name: string; readonly facts: Json };

/** As the object writes it. Source: ParentReference of the Gateway API. */
export interface StatusReference {
  readonly group?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name: string;
  readonly sectionName?: string;
  readonly port?: number;
}

export const WHOLE: Place = { in: 'object' };

/** Equal for places that are the same. Defaults are those of the Gateway API. */
export function placeKey(place: Place): string {
  switch (place.in) {
    case 'object':
      return place.in;
    case 'listeners':
      return `${place.in}/${place.name}`;
    case 'parents':
    case 'ancestors': {
      const { group = 'gateway.networking.k8s.io', kind = 'Gateway', namespace, name, sectionName, port } = place.ref;
      return JSON.stringify([place.in, group, kind, namespace, name, sectionName, port]);
    }
  }
}
