import { parseObjectKey } from '../api/object.ts';
import type { Group } from '../cache/index-of.ts';
import type { Mesh } from '../mesh.ts';
import type { HeldPart } from '../mesh/objects/held-endpoints.ts';
import type { LostEndpoint } from '../model/lost-endpoints.ts';

/** An endpoint that is served although a list of the API server no longer had it; for people and their tools. */
export interface HeldEndpoint {
  /** `namespace/name` */
  readonly service: string;
  readonly address: string;
  /** `namespace/name` */
  readonly pod: string;
  /** RFC 3339: when the list was complete, and when the endpoint goes unless it is listed again. */
  readonly since: string;
  readonly until: string;
  /** Whether the API server has sent anything new about Pods since the list. */
  readonly confirmed: boolean;
}

/** A Service of which endpoints are held, and what is new about Pods has confirmed it. */
export interface HeldService {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly endpoints: readonly [LostEndpoint, ...LostEndpoint[]];
}

/** As they are now. */
export function heldEndpoints({ endpoints: { held } }: Mesh): readonly HeldEndpoint[] {
  return [...held.byService.entries()].flatMap(([, parts]) =>
    parts.flatMap(({ value: { namespace, service, endpoints } }) =>
      endpoints.map(({ address, pod, since, until, confirmed }) => ({
        service: `${namespace}/${service}`,
        address,
        pod: `${pod.namespace}/${pod.name}`,
        since,
        until,
        confirmed,
      })),
    ),
  );
}

/** Calls back when more endpoints of a Service are held than before; not before something new about Pods confirms it. */
export function onHeld({ graph, inputs, endpoints }: Mesh, held: (service: HeldService) => void): void {
  graph.follow(endpoints.held.byService, (changes) => {
    for (const { key, before, after } of changes) {
      const known = new Set(confirmed(before).map(idOf));
      const [first, ...rest] = confirmed(after);
      if (first === undefined || [first, ...rest].every((endpoint) => known.has(idOf(endpoint)))) continue;
      const { namespace, name } = parseObjectKey(key);
      const uid = inputs.objects.Service.get(key)?.metadata.uid ?? '';
      held({ namespace, name, uid, endpoints: [first, ...rest] });
    }
  });
}

function confirmed(parts: Group<HeldPart> | undefined): readonly LostEndpoint[] {
  return (parts ?? []).flatMap(({ value }) => value.endpoints.filter((endpoint) => endpoint.confirmed));
}

const idOf = ({ address, since }: LostEndpoint): string => `${address} ${since}`;

/** Endpoints that an Event names. */
const NAMED = 10;

/** What an Event of the Service says. */
export function heldReport({ namespace, name, uid, endpoints }: HeldService) {
  const { since, until } = endpoints.reduce((a, b) => (a.since < b.since ? b : a));
  const named = endpoints.slice(0, NAMED).map(({ address, pod }) => `${address} (Pod ${pod.name})`);
  const more = endpoints.length > NAMED ? ', ...' : '';
  const message = `${endpoints.length} endpoints are no longer listed, but their Pods are there and ready. They are served until ${until}, or until "fairlead release ${namespace}/${name}": ${named.join(', ')}${more}`;
  const object = { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
  return { key: `held/${since}`, object, reason: 'EndpointsHeld', message };
}
