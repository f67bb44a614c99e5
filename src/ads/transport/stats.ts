import type { Frame } from '../wire/frames.ts';
import type { Limit } from './limits.ts';
import { itemsOf, type Sent } from '../protocol/sent.ts';
import { rejectedNames } from '../protocol/rejected-names.ts';
import type { AdsStream } from './stream.ts';
import type { Subscription } from '../protocol/subscription.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';
import type { WorldView } from '../store/world.ts';

/** Figures of the server. Counters are by the type's short name. */
export interface AdsCounts {
  readonly pushes: Readonly<Record<string, number>>;
  readonly bytes: Readonly<Record<string, number>>;
  readonly rejections: Readonly<Record<string, number>>;
  /** Requests that answer a response that is no longer the newest. */
  readonly expired: Readonly<Record<string, number>>;
  /** Waits for an acknowledgement that timed out: what waited was sent anyway. */
  readonly timeouts: number;
  /** Times that a stream was resent assignments because its answer to clusters was missing for a long time. */
  readonly overdue: number;
  /** Streams that this server has ended, by gRPC status. */
  readonly ended: Readonly<Record<string, number>>;
  /** Bugs that ended a stream. Must be zero. */
  readonly failures: number;
  /** Streams whose bytes went through grpc-js instead of bypassing it: several times the CPU. Must be zero. */
  readonly indirect: number;
  readonly streams: number;
  /** Streams that are owed something, whether or not it may be sent now. */
  readonly pendingStreams: number;
  readonly waitingForWorld: number;
  readonly waitingForPlace: number;
  readonly lists: number;
  readonly roots: number;
  readonly worlds: number;
  readonly resources: number;
  readonly nameSets: number;
  /** Streams that may not begin yet: their address has begun too many. */
  readonly waitingToBegin: number;
  /** Streams that are owed something, and whose turn has not come. */
  readonly waitingForTurn: number;
  /** Streams whose message is not received yet, for lack of room. */
  readonly waitingForRoom: number;
  /** How often each limit refused or ended something. */
  readonly limits: Readonly<Record<Limit, number>>;
}

/** Told of each response, for histograms. Must be cheap. */
export interface AdsMeasure {
  /** It is handed to its connection. */
  sent(shortName: string, bytes: number): void;
  /** The connection has taken what it was handed, after this many milliseconds. */
  taken(ms: number): void;
}

type Gauges = Omit<
  AdsCounts,
  'pushes' | 'bytes' | 'rejections' | 'expired' | 'ended' | 'failures' | 'indirect' | 'timeouts' | 'overdue'
>;

export class AdsStats {
  failures = 0;
  indirect = 0;
  timeouts = 0;
  overdue = 0;
  readonly ended: Record<string, number> = {};
  readonly #pushes: Record<string, number> = {};
  readonly #bytes: Record<string, number> = {};
  readonly #rejections: Record<string, number> = {};
  readonly #expired: Record<string, number> = {};

  constructor(types: ResourceTypes) {
    for (const { shortName } of types)
      for (const counts of [this.#pushes, this.#bytes, this.#rejections, this.#expired]) counts[shortName] = 0;
  }

  sent({ shortName }: ResourceType, frame: Frame): void {
    this.#pushes[shortName]!++;
    this.#bytes[shortName]! += frame.length;
  }

  rejected({ shortName }: Pick<ResourceType, 'shortName'>): void {
    this.#rejections[shortName]!++;
  }

  expiredNonce({ shortName }: ResourceType): void {
    this.#expired[shortName]!++;
  }

  counts(gauges: Gauges): AdsCounts {
    return {
      pushes: { ...this.#pushes },
      bytes: { ...this.#bytes },
      rejections: { ...this.#rejections },
      expired: { ...this.#expired },
      ended: { ...this.ended },
      failures: this.failures,
      indirect: this.indirect,
      timeouts: this.timeouts,
      overdue: this.overdue,
      ...gauges,
    };
  }
}

/** One stream as `/debug/syncz` shows it. */
export interface StreamState {
  readonly stream: string;
  readonly nodeId: string;
  readonly build: string;
  /** IP address of the client. */
  readonly address: string;
  /** How long it has been open. Milliseconds. */
  readonly openMs: number;
  readonly types: readonly TypeState[];
}

export interface TypeState {
  readonly typeUrl: string;
  readonly shortName: string;
  /** The names that it asked for. */
  readonly names: Iterable<string>;
  /**
   * Nonces; empty before the first. Both are `resumed` of a client that came with everything that it is owed, and has
   * been sent nothing: in tools of Istio, a type without nonces is not synced.
   */
  readonly sent: string;
  readonly acked: string;
  /** How long ago something was sent last; undefined: never. Milliseconds. */
  readonly sentMs: number | undefined;
  /** How long the oldest response has gone without an answer, or undefined if there is none. Milliseconds. */
  readonly unansweredMs: number | undefined;
  /** What the client says against what it was sent. */
  readonly error: string | undefined;
  /** Number of names owed; while everything is, that of all there are. */
  readonly pending: number;
  /** Everything that the client is owed was sent and accepted. */
  readonly synced: boolean;
  /** Names whose present version this client rejected. */
  readonly rejected: readonly string[];
  /** Some of the names in a response whose answer is long overdue; for clusters, those that do not get warm. */
  readonly overdue: readonly string[];
}

/** Enough names to see a pattern. */
const MOST_OVERDUE = 20;

/** Empty for a stream that has not identified itself yet. */
export function stateOf(stream: AdsStream, now: number, overdueMs: number): StreamState[] {
  const { proxy, delivery, history } = stream;
  if (proxy === undefined) return [];
  const types = (delivery?.subscriptions ?? []).flatMap((subscription): TypeState[] => {
    if (delivery === undefined || subscription === undefined) return [];
    const { view } = delivery;
    const { type, interest, owes, inFlight } = subscription;
    const rejected = rejectedNames(subscription, view);
    const synced = !owes && inFlight.size === 0 && !delivery.isBehind;
    const before = synced && subscription.cameWithVersions && inFlight.sentNonce === 0 ? 'resumed' : '';
    return [
      {
        typeUrl: type.typeUrl,
        shortName: type.shortName,
        names: interest.names.names,
        sent: nonceText(inFlight.sentNonce, before),
        acked: nonceText(inFlight.ackedNonce, before),
        sentMs: inFlight.sentNonce === 0 ? undefined : now - inFlight.sentAt,
        unansweredMs: inFlight.oldest && now - inFlight.oldest.at,
        error: history.errorOf(type.typeUrl, inFlight.ackedNonce, rejected.length > 0),
        pending: pendingOf(subscription, view),
        synced,
        rejected,
        overdue: overdueOf(inFlight.oldest, now - overdueMs),
      },
    ];
  });
  const { id, address, openedAt } = stream;
  return [{ stream: id, nodeId: proxy.nodeId, build: proxy.build, address, openMs: now - openedAt, types }];
}

function pendingOf({ type, all, interest: { wildcard, names }, ledger }: Subscription, view: WorldView): number {
  if (!all) return ledger.pending?.size ?? 0;
  if (!wildcard) return names.size;
  // Not made just to be counted: hundreds of streams may be owed everything, and somebody looks at all of them.
  let count = 0;
  for (const { lists } of view.roots)
    for (const list of lists.keys()) count += list.members.get(type.typeUrl)?.size ?? 0;
  return count;
}

function overdueOf(oldest: Sent | undefined, before: number): string[] {
  if (oldest === undefined || oldest.at > before) return [];
  const names: string[] = [];
  for (const { name } of itemsOf(oldest)) {
    if (names.length === MOST_OVERDUE) break;
    // What the client held before in another version keeps serving.
    if (oldest.prior === undefined || (oldest.prior.has(name) && oldest.prior.get(name) === undefined))
      names.push(name);
  }
  return names;
}

function nonceText(nonce: number, before: string): string {
  return nonce === 0 ? before : String(nonce);
}
