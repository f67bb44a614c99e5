import type { Endpoints, EndpointSlice, TargetRef } from '../api/core.ts';
import type { SourceKindName } from '../api/kinds.ts';
import { type KubernetesObject, objectKey, parseObjectKey, sourceOfKey } from '../api/object.ts';
import type { Write } from '../cache/graph.ts';
import type { Clock } from '../base/clock.ts';
import type { Inputs } from '../mesh/inputs.ts';
import type { LostEndpoint, LostEndpoints } from '../model/lost-endpoints.ts';
import { serviceOfSlice } from '../reconcilers/core/endpoint-slice.ts';

/** How long an endpoint that a list lost is remembered, in milliseconds: a contradiction is settled by then, or is real. */
export const LOST_MS = 5 * 60_000;

/** Beyond this, the oldest are forgotten. About as many as the largest clusters have. */
const mostLost = 100_000;

/** News of Pods that arrive together with the list may be older than it. Milliseconds. */
const NEWS_MS = 1_000;

export interface EndpointHistoryOptions {
  readonly inputs: Pick<Inputs, 'lostEndpoints'>;
  readonly write: (write: Write) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface Lost {
  /** The object that listed it. */
  readonly id: string;
  /** The Service that it listed it for: not always the same one. */
  readonly service: string;
  readonly at: number;
  endpoint: LostEndpoint;
}

/**
 * Remembers for some minutes the endpoints that were gone when the API server listed their objects again. Nobody saw
 * them go, so the list may be wrong: whether they are still served is for the graph to decide, from what is known of
 * their Pods. What a watch event says is the truth, and nothing of it is remembered.
 *
 * To be called along with the writes that say the same.
 */
export class EndpointHistory {
  readonly #options: EndpointHistoryOptions;
  /** What is known now, by id. */
  readonly #objects = new Map<string, EndpointSlice | Endpoints>();
  readonly #uids = new Map<string, string | undefined>();
  /** Oldest first. */
  readonly #lost = new Set<Lost>();
  /** Lost endpoints of whose Pods nothing new has been sent since; oldest first. */
  readonly #unconfirmed = new Set<Lost>();
  readonly #byObject = new Map<string, Set<Lost>>();
  /** By Service, then address. */
  readonly #byService = new Map<string, Map<string, Lost>>();
  /** Whose entries in the input are to be written, by their keys. */
  readonly #stale = new Map<string, Lost>();
  /** While a list is being delivered: what the objects were that changed with it. */
  #before: Map<string, EndpointSlice | Endpoints> | undefined;
  #cancel: (() => void) | undefined;

  constructor(options: EndpointHistoryOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => this.#cancel?.(), { once: true });
  }

  /** The object was created, changed or deleted; inside {@link listed}, some time ago. */
  changed(kind: SourceKindName, key: string, object: KubernetesObject | undefined): void {
    if (kind === 'Pod') this.#confirm();
    else if (kind === 'Service') this.#serviceChanged(key, object);
    else if (kind === 'EndpointSlice') this.#listingChanged(key, object as EndpointSlice | undefined);
    else if (kind === 'Endpoints') this.#listingChanged(legacyId(key), object as Endpoints | undefined);
    this.#write();
  }

  /** All objects of a kind were listed: `deliver` makes the calls of {@link changed} that follow from the list. */
  listed(kind: SourceKindName, deliver: () => void): void {
    if (kind !== 'EndpointSlice' && kind !== 'Endpoints') return deliver();
    this.#before = new Map();
    try {
      deliver();
    } finally {
      const before = this.#before;
      this.#before = undefined;
      this.#compare(before);
      this.#write();
    }
  }

  /** Everything that the API server had of this kind has arrived. */
  caughtUp(kind: SourceKindName): void {
    if (kind === 'Pod') this.#confirm();
    this.#write();
  }

  #listingChanged(id: string, object: EndpointSlice | Endpoints | undefined): void {
    const before = this.#objects.get(id);
    if (object === undefined) this.#objects.delete(id);
    else this.#objects.set(id, object);
    if (this.#before !== undefined) {
      if (before !== undefined && !listsTheSame(before, object)) this.#before.set(id, before);
      return;
    }
    for (const lost of this.#byObject.get(id) ?? []) this.#forget(lost);
    if (object !== undefined) this.#found(id, object);
  }

  /** Finds what the changed objects had and no object of the same Service has now. */
  #compare(before: ReadonlyMap<string, EndpointSlice | Endpoints>): void {
    const { clock } = this.#options;
    const [at, date] = [clock.now(), clock.date().getTime()];
    const [since, until] = [date, date + LOST_MS].map((time) => new Date(time).toISOString()) as [string, string];
    // In an order that does not depend on that of the list: of two objects with one address, the first counts.
    for (const [id, object] of [...before].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const service = serviceOf(id, object);
      if (service === undefined) continue;
      for (const { address, ports, pod, isReady } of endpointsOf(object))
        if (isReady && pod !== undefined)
          this.#remember({ id, service, at, endpoint: { address, ports, pod, since, until, confirmed: false } });
    }
    if (this.#lost.size > 0) for (const [id, object] of this.#objects) this.#found(id, object);
    while (this.#lost.size > mostLost) this.#forget(first(this.#lost)!);
    this.#wait();
  }

  #remember(lost: Lost): void {
    const { id, service, endpoint } = lost;
    let ofService = this.#byService.get(service);
    if (ofService === undefined) this.#byService.set(service, (ofService = new Map<string, Lost>()));
    const known = ofService.get(endpoint.address);
    if (known !== undefined) {
      known.endpoint = { ...known.endpoint, ports: [...known.endpoint.ports, ...endpoint.ports] };
      return;
    }
    ofService.set(endpoint.address, lost);
    const ofObject = this.#byObject.get(id);
    if (ofObject === undefined) this.#byObject.set(id, new Set([lost]));
    else ofObject.add(lost);
    this.#lost.add(lost);
    this.#unconfirmed.add(lost);
    this.#stale.set(keyOf(lost), lost);
  }

  #forget(lost: Lost): void {
    const { id, service, endpoint } = lost;
    const ofService = this.#byService.get(service);
    ofService?.delete(endpoint.address);
    if (ofService?.size === 0) this.#byService.delete(service);
    const ofObject = this.#byObject.get(id);
    ofObject?.delete(lost);
    if (ofObject?.size === 0) this.#byObject.delete(id);
    this.#lost.delete(lost);
    this.#unconfirmed.delete(lost);
    this.#stale.set(keyOf(lost), lost);
  }

  /** What is listed is not lost. */
  #found(id: string, object: EndpointSlice | Endpoints): void {
    const service = serviceOf(id, object);
    const ofService = service === undefined ? undefined : this.#byService.get(service);
    if (ofService === undefined) return;
    for (const { address } of endpointsOf(object)) {
      const lost = ofService.get(address);
      if (lost !== undefined) this.#forget(lost);
    }
  }

  #serviceChanged(key: string, object: KubernetesObject | undefined): void {
    const uid = object?.metadata.uid;
    const isSame = object !== undefined && this.#uids.get(key) === uid;
    if (object === undefined) this.#uids.delete(key);
    else this.#uids.set(key, uid);
    if (isSame) return;
    for (const service of [key, legacyId(key)])
      for (const lost of this.#byService.get(service)?.values() ?? []) this.#forget(lost);
  }

  #confirm(): void {
    if (this.#unconfirmed.size === 0) return;
    const now = this.#options.clock.now();
    for (const lost of this.#unconfirmed) {
      if (now < lost.at + NEWS_MS) return;
      lost.endpoint = { ...lost.endpoint, confirmed: true };
      this.#unconfirmed.delete(lost);
      this.#stale.set(keyOf(lost), lost);
    }
  }

  #write(): void {
    const { inputs, write } = this.#options;
    for (const [key, { id, service }] of this.#stale) {
      const lost = [...(this.#byObject.get(id) ?? [])].filter((one) => one.service === service);
      write(inputs.lostEndpoints.write(key, lost.length === 0 ? undefined : valueOf(service, lost)));
    }
    this.#stale.clear();
  }

  #wait(): void {
    const { clock, signal } = this.#options;
    const next = first(this.#lost);
    if (this.#cancel !== undefined || next === undefined || signal.aborted) return;
    this.#cancel = clock.after(Math.max(0, next.at + LOST_MS - clock.now()), () => {
      this.#cancel = undefined;
      const now = clock.now();
      for (const lost of this.#lost) {
        if (now < lost.at + LOST_MS) break;
        this.#forget(lost);
      }
      this.#write();
      this.#wait();
    });
  }
}

const LEGACY = '#legacy';

/** Slices and Endpoints may have the same name. */
const legacyId = (key: string): string => `${key}${LEGACY}`;

/** In the input; begins like that of the object. */
const keyOf = ({ id, service }: Lost): string => `${id}|${service}`;

/** Key of the Service that the object lists endpoints of, for legacy ones with the suffix of their ids. */
function serviceOf(id: string, object: EndpointSlice | Endpoints): string | undefined {
  if (!isSlice(object)) return id;
  const service = serviceOfSlice(object);
  return service === undefined ? undefined : objectKey(sourceOfKey(id), object.metadata.namespace ?? '', service);
}

function valueOf(service: string, lost: readonly Lost[]): LostEndpoints {
  const legacy = service.endsWith(LEGACY);
  const { namespace, name } = parseObjectKey(legacy ? service.slice(0, -LEGACY.length) : service);
  return { namespace, service: name, legacy, endpoints: lost.map(({ endpoint }) => endpoint) };
}

interface Listed extends Pick<LostEndpoint, 'address' | 'ports'> {
  readonly pod: LostEndpoint['pod'] | undefined;
  readonly isReady: boolean;
}

function* endpointsOf(object: EndpointSlice | Endpoints): Generator<Listed> {
  const { namespace = '' } = object.metadata;
  if (isSlice(object)) {
    for (const { addresses, conditions, targetRef } of object.endpoints ?? []) {
      const shared = {
        ports: object.ports ?? [],
        pod: podOf(targetRef, namespace),
        isReady: conditions?.ready !== false,
      };
      for (const address of addresses) yield { address, ...shared };
    }
    return;
  }
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of object.subsets ?? []) {
    for (const { ip, targetRef } of addresses)
      yield { address: ip, ports, pod: podOf(targetRef, namespace), isReady: true };
    for (const { ip } of notReadyAddresses) yield { address: ip, ports, pod: undefined, isReady: false };
  }
}

function podOf(target: TargetRef | undefined, ofObject: string): LostEndpoint['pod'] | undefined {
  const { kind, namespace = ofObject, name, uid } = target ?? {};
  return kind === 'Pod' && name !== undefined && uid !== undefined ? { namespace, name, uid } : undefined;
}

/** Sources deliver the same values again where nothing has changed. */
function listsTheSame(a: EndpointSlice | Endpoints, b: EndpointSlice | Endpoints | undefined): boolean {
  if (b === undefined || isSlice(a) !== isSlice(b)) return false;
  if (!isSlice(a) || !isSlice(b)) return (a as Endpoints).subsets === (b as Endpoints).subsets;
  return a.endpoints === b.endpoints && a.ports === b.ports && serviceOfSlice(a) === serviceOfSlice(b);
}

const isSlice = (object: EndpointSlice | Endpoints): object is EndpointSlice => object.kind === 'EndpointSlice';

function first<T>(all: Iterable<T>): T | undefined {
  for (const one of all) return one;
  return undefined;
}
