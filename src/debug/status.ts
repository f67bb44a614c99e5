import type { StreamState, TypeState } from '../ads/transport/stats.ts';
import { printRef } from '../api/object.ts';
import type { Clock } from '../base/clock.ts';
import type { Engine } from '../engine/engine.ts';
import type { Tracked } from '../engine/progress.ts';
import { proxyName } from '../status/programmed.ts';
import type { HeldReport, ObjectReport, ProxyReport, StatusReport, TypeReport } from './status-report.ts';

/** Proxies, objects and names that are listed in one place; all are counted. */
const MOST_LISTED = 20;

export interface StatusSources {
  readonly engine: {
    readonly ads: Pick<Engine['ads'], 'streams'>;
    readonly progress: Pick<Engine['progress'], 'rollouts' | 'unfollowed'> & {
      readonly unfinished: () => Iterable<Tracked>;
    };
    readonly mesh: { readonly verdicts: Pick<Engine['mesh']['verdicts'], 'get'> };
    readonly servingSince: Engine['servingSince'];
  };
  readonly replica: string;
  readonly version: string;
  readonly clock: Pick<Clock, 'now' | 'date'>;
  readonly held: () => Iterable<HeldReport>;
}

/**
 * JSON of a {@link StatusReport}, in pieces.
 * @param asked `pod.namespace` or the id of a node: only this proxy, and the objects that wait for it.
 */
export function* statusJson(sources: StatusSources, asked?: string): Generator<string> {
  const { engine, replica, version, clock } = sources;
  const times = new Times(clock);
  const isAsked = (node: string): boolean => asked === undefined || node === asked || proxyName(node) === asked;
  const views = new Map<string, View>();
  for (const state of engine.ads.streams()) if (isAsked(state.nodeId)) views.set(state.stream, new View(state, times));
  const since = engine.servingSince();
  const head: Omit<StatusReport, 'objects' | 'proxies' | 'held'> = {
    ...{ replica, version, at: times.text(times.now) },
    ...(since !== undefined && { servingSince: times.text(since) }),
    ...(engine.progress.unfollowed > 0 && { unfollowed: engine.progress.unfollowed }),
  };
  yield `${JSON.stringify(head).slice(0, -1)},\n"objects": [`;
  yield* separated(objectReports(engine, { views, isAsked, isEverybody: asked === undefined }, times));
  // The objects have told the views who waits for them.
  yield '\n],\n"proxies": [';
  yield* separated(proxyReports(views.values()));
  yield '\n],\n"held": [';
  yield* separated(asked === undefined ? sources.held() : []);
  yield '\n]}\n';
}

/** An empty piece for each element that is left out: looking for the next one takes time, too. */
function* separated(elements: Iterable<object | undefined>): Generator<string> {
  let separator = '\n';
  for (const element of elements) {
    yield element === undefined ? '' : separator + JSON.stringify(element);
    if (element !== undefined) separator = ',\n';
  }
}

interface Asked {
  readonly isEverybody: boolean;
  /** Of those that are asked for, by stream. */
  readonly views: ReadonlyMap<string, View>;
  readonly isAsked: (node: string) => boolean;
}

function* objectReports(
  engine: StatusSources['engine'],
  asked: Asked,
  times: Times,
): Generator<ObjectReport | undefined> {
  for (const tracked of engine.progress.unfinished()) yield objectReport(tracked, engine, asked, times);
}

/** Undefined: it does not wait for any of those that are asked for. Tells their views. */
function objectReport(
  tracked: Tracked,
  { progress, mesh }: StatusSources['engine'],
  { isEverybody, views, isAsked }: Asked,
  times: Times,
): ObjectReport | undefined {
  const { key, object, since, isDeleted } = tracked;
  const { state } = tracked.progress;
  if (state === 'concernsNobody') return undefined;
  const name = printRef(object);
  const rollout = progress.rollouts.get(key);
  const rejecting = rollout?.rejections();
  const waiting: ObjectReport['waiting'][number][] = [];
  let [waitingCount, concerns] = [0, isEverybody];
  for (const recipient of rollout?.waiting() ?? []) {
    const { stream, nodeId } = recipient;
    const view = views.get(stream);
    const rejects = rejecting?.has(recipient) === true;
    view?.waitedForBy(name, rejects ? undefined : since);
    concerns ||= view !== undefined;
    if (rejects) continue;
    waitingCount++;
    // A proxy may have come after the views were made.
    if (waiting.length === MOST_LISTED || (view === undefined && !isEverybody)) continue;
    waiting.push({ proxy: proxyName(nodeId), stream, since: times.text(Math.max(since, view?.connected ?? since)) });
  }
  const rejected = rejectedIn(tracked, isAsked);
  if (!concerns && rejected.rejections.length === 0) return undefined;
  const { inForce } = (isDeleted ? undefined : mesh.verdicts.get(key)) ?? {};
  return {
    object: name,
    generation: object.generation,
    isDeleted,
    since: times.text(since),
    state: state === 'rejected' ? 'rejected' : 'waiting',
    ...(inForce && { inForce: inForce === 'nothing' ? inForce : inForce.generation }),
    waiting,
    waitingCount,
    ...rejected,
  };
}

function rejectedIn(
  { progress }: Tracked,
  isAsked: (node: string) => boolean,
): Pick<ObjectReport, 'rejections' | 'rejectingCount'> {
  if (progress.state !== 'rejected') return { rejections: [], rejectingCount: 0 };
  const rejections: ObjectReport['rejections'][number][] = [];
  for (const { nodeId, ...rejection } of progress.rejections) {
    if (rejections.length === MOST_LISTED) break;
    if (isAsked(nodeId)) rejections.push({ proxy: proxyName(nodeId), ...rejection });
  }
  return { rejections, rejectingCount: progress.proxies };
}

function* proxyReports(views: Iterable<View>): Generator<ProxyReport> {
  for (const view of views) yield view.report();
}

/** A proxy, and what waits for it. */
class View {
  /** On the clock. */
  readonly connected: number;
  readonly #state: StreamState;
  readonly #times: Times;
  readonly #objects: string[] = [];
  #count = 0;
  /** Since when the first of them has waited. */
  #since = Infinity;

  constructor(state: StreamState, times: Times) {
    this.#state = state;
    this.#times = times;
    this.connected = times.now - state.openMs;
  }

  /** @param since undefined: the proxy has answered, and rejects it. */
  waitedForBy(object: string, since: number | undefined): void {
    this.#count++;
    if (this.#objects.length < MOST_LISTED) this.#objects.push(object);
    if (since !== undefined) this.#since = Math.min(this.#since, Math.max(since, this.connected));
  }

  report(): ProxyReport {
    const { nodeId, stream, build, types } = this.#state;
    const times = this.#times;
    const synced = types.length > 0 && types.every((type) => type.synced);
    const unanswered = types.map(({ unansweredMs }) =>
      unansweredMs === undefined ? Infinity : times.now - unansweredMs,
    );
    const since = Math.min(this.#since, ...unanswered);
    return {
      proxy: proxyName(nodeId),
      ...{ node: nodeId, stream, build, connectedSince: times.text(this.connected), synced },
      ...(!synced && since !== Infinity && { behindSince: times.text(since) }),
      types: Object.fromEntries(types.map((type) => [type.shortName, typeReport(type, times)])),
      waitedForBy: this.#objects,
      waitedForByCount: this.#count,
    };
  }
}

function typeReport(type: TypeState, times: Times): TypeReport {
  const { synced, pending, unansweredMs, rejected, error, overdue } = type;
  return {
    synced,
    owed: pending,
    ...(unansweredMs !== undefined && { unansweredSince: times.text(times.now - unansweredMs) }),
    rejected: rejected.slice(0, MOST_LISTED),
    rejectedCount: rejected.length,
    ...(error !== undefined && { error }),
    overdue,
  };
}

/** Times on the clock, as people read them. */
class Times {
  readonly now: number;
  readonly #date: number;

  constructor(clock: Pick<Clock, 'now' | 'date'>) {
    this.now = clock.now();
    this.#date = clock.date().getTime();
  }

  text(at: number): string {
    return new Date(this.#date - (this.now - at)).toISOString();
  }
}
