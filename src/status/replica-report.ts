import { isObject, type Json } from '../api/json.ts';
import type { Progress, RejectedResource } from './programmed.ts';

/** What a replica knows of the way of objects to its own proxies. */
export interface ReplicaReport {
  /** RFC 3339. */
  readonly servingSince: string;
  /** By kind: it knows every object up to this resourceVersion. Those that it does not report concern none of its proxies. */
  readonly seen: Readonly<Record<string, string>>;
  /** Whose newest generation is yet to be confirmed by their condition. */
  readonly objects: readonly ReportedObject[];
  /** Namespaces of which there are more: silence about their objects means nothing. `*`: all of them. */
  readonly cut: readonly string[];
}

export interface ReportedObject {
  /** `group/kind/source/namespace/name` */
  readonly key: string;
  readonly uid: string;
  readonly generation: number;
  readonly progress: Progress;
  /** It is not in force there, because of what proxies say. */
  readonly isRejected?: true;
}

/** Objects in a report. */
export const mostReported = 2_000;
/** Proxies that are named for an object. */
const mostNamed = 5;

/** As the object's `spec`. */
export function printReport({ servingSince, seen, objects, cut }: ReplicaReport): Json {
  return {
    servingSince,
    seen,
    objects: objects.map(printObject),
    ...(cut.length > 0 && { cut }),
  };
}

export function printObject({ key, uid, generation, progress, isRejected }: ReportedObject): Json {
  return { key, uid, generation, ...printProgress(progress), ...(isRejected && { isRejected }) };
}

function printProgress(progress: Progress): Json {
  switch (progress.state) {
    case 'acknowledged':
      return { state: progress.state, proxies: progress.proxies };
    case 'underway':
      return { state: progress.state, proxies: progress.proxies, named: namesOf(progress.waiting) };
    case 'rejected':
      return {
        state: progress.state,
        proxies: progress.proxies,
        rejections: progress.rejections.slice(0, mostNamed),
        ...(progress.isRecalled && { isRecalled: true }),
      };
    default:
      return { state: progress.state };
  }
}

function namesOf(proxies: readonly { readonly nodeId: string }[]): readonly string[] {
  return proxies.slice(0, mostNamed).map(({ nodeId }) => nodeId);
}

/** Undefined for what is not one. Other versions may report more. */
export function readReport(spec: unknown): ReplicaReport | undefined {
  if (!isObject(spec) || typeof spec['servingSince'] !== 'string' || !isObject(spec['seen'])) return undefined;
  const { servingSince, seen, objects, cut } = spec;
  return {
    servingSince,
    seen: Object.fromEntries(Object.entries(seen).filter((each): each is [string, string] => isText(each[1]))),
    objects: (Array.isArray(objects) ? objects : []).slice(0, mostReported).flatMap(readObject),
    cut: Array.isArray(cut) ? cut.filter(isText) : [],
  };
}

function readObject(value: unknown): readonly ReportedObject[] {
  if (!isObject(value)) return [];
  const { key, uid, generation, isRejected } = value;
  const progress = readProgress(value);
  if (typeof key !== 'string' || typeof uid !== 'string' || typeof generation !== 'number' || progress === undefined)
    return [];
  return [{ key, uid, generation, progress, ...(isRejected === true && { isRejected }) }];
}

function readProgress({ state, proxies, named, rejections, isRecalled }: Json): Progress | undefined {
  const count = typeof proxies === 'number' ? proxies : 0;
  switch (state) {
    case 'acknowledged':
      return { state, proxies: count };
    case 'underway': {
      const all: readonly unknown[] = Array.isArray(named) ? named : [];
      const names = all.slice(0, mostNamed).filter(isText);
      return { state, proxies: count, waiting: names.map((nodeId) => ({ nodeId })) };
    }
    case 'rejected':
      return {
        state,
        proxies: count,
        rejections: readRejections(rejections, mostNamed),
        ...(isRecalled === true && { isRecalled }),
      };
    default:
      return undefined;
  }
}

/** Characters of one field of a rejection. */
const longestText = 1024;

/** As others have written them; what is not a text is empty. */
export function readRejections(value: unknown, most: number): readonly RejectedResource[] {
  const text = (each: unknown): string => (isText(each) ? each.slice(0, longestText) : '');
  const all = Array.isArray(value) ? value.slice(0, most).filter(isObject) : [];
  return all.map(({ nodeId, build, typeUrl, name, message }) => ({
    nodeId: text(nodeId),
    build: text(build),
    typeUrl: text(typeUrl),
    name: text(name),
    message: text(message),
  }));
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** What replicas together know of an object. */
export function joinProgress(all: readonly Progress[]): Progress {
  const saidSo = all.filter((each) => each.state === 'rejected');
  const firsthand = saidSo.filter(({ isRecalled }) => isRecalled !== true);
  // The others repeat what somebody has said.
  const rejected = firsthand.length > 0 ? firsthand : saidSo.sort((a, b) => b.proxies - a.proxies).slice(0, 1);
  if (rejected.length > 0)
    return {
      state: 'rejected',
      proxies: rejected.reduce((sum, { proxies }) => sum + proxies, 0),
      rejections: rejected.flatMap(({ rejections }) => rejections).slice(0, mostNamed),
    };
  const underway = all.filter((each) => each.state === 'underway');
  if (underway.length > 0)
    return {
      state: 'underway',
      proxies: underway.reduce((sum, { proxies }) => sum + proxies, 0),
      waiting: underway.flatMap(({ waiting }) => waiting),
    };
  const silent = all.filter((each) => each.state === 'silent');
  if (silent.length > 0) return { state: 'silent', replicas: silent.flatMap(({ replicas }) => replicas) };
  const acknowledged = all.filter((each) => each.state === 'acknowledged');
  if (acknowledged.length === 0) return { state: 'concernsNobody' };
  return { state: 'acknowledged', proxies: acknowledged.reduce((sum, { proxies }) => sum + proxies, 0) };
}
