import { createHash } from 'node:crypto';
import { type CustomKindName, kinds, restricts } from '../api/kinds.ts';
import { isObject, type Json } from '../api/json.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Validate } from '../api/validate.ts';
import type { Verdict } from '../mesh/findings/conditions.ts';
import type { FormerGenerations, RejectedGeneration } from '../mesh/inputs.ts';
import { readRejections } from '../status/replica-report.ts';

/** What the cluster keeps of an object whose newest generation is not in force. */
export interface KeptGenerations {
  readonly object: { readonly kind: CustomKindName; readonly name: string; readonly uid: string };
  readonly newest: number;
  /** Absent: nothing. */
  readonly inForce?: number;
  /** Why the newest is not. */
  readonly reason: 'Invalid' | 'Rejected';
  /** Newest first. */
  readonly former: readonly FormerGeneration[];
  readonly rejected: RejectedGeneration['generations'];
}

/** What an earlier generation said. The rest of the object is as it is now. */
export interface FormerGeneration {
  readonly apiVersion: string;
  readonly generation: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
}

/** Of one object. As in its CRD. */
const mostFormer = 2;
/** Rejected generations. A new one that nobody rejects ends them all. */
export const mostRejected = 4;
/** Rejections of one generation; the others are counted. */
export const mostRejections = 5;
/** Levels of a spec that is kept: no kind has as many, and comparing thousands of them overflows the stack. */
const mostLevels = 100;
/** As JSON: etcd takes 1.5 MiB, and its metadata is not counted here. */
const mostBytes = 1_400_000;

export interface Decided {
  readonly verdict: Verdict | undefined;
  readonly former: FormerGenerations | undefined;
  readonly rejected: RejectedGeneration | undefined;
}

/** Undefined: nothing is to be kept. `undecided`: it is soon to be seen whether its newest generation can be in force. */
export function keptGenerations({ verdict, former, rejected }: Decided): KeptGenerations | 'undecided' | undefined {
  if (verdict === undefined) return undefined;
  const { kind, name, uid, generation, inForce, waits } = verdict;
  if (waits !== undefined) return 'undecided';
  const rejections = rejected?.uid === uid ? rejected.generations : [];
  const ofNewest = rejections.find((each) => each.generation === generation);
  if (ofNewest?.isSuspect === true) return 'undecided';
  if (inForce === undefined) return undefined;
  const good = (former?.objects ?? []).filter(
    ({ metadata }) =>
      metadata.uid === uid && !rejections.some((each) => each.generation === (metadata.generation ?? 0)),
  );
  return {
    object: { kind, name, uid },
    newest: generation,
    ...(typeof inForce === 'object' && { inForce: inForce.generation }),
    reason: ofNewest === undefined ? 'Invalid' : 'Rejected',
    former: good.slice(0, mostFormer).map(formerGeneration).filter(isFlat),
    rejected: rejections.filter(isSettled).slice(-mostRejected),
  };
}

/** Whether a rejection counts for other replicas, too. */
export function isSettled({ isSuspect, isHere }: RejectedGeneration['generations'][number]): boolean {
  return isSuspect !== true && isHere !== true;
}

/** The generation of an object that is now as `newest` says. */
export function formerObject(
  newest: KubernetesObject,
  { apiVersion, generation, labels, annotations, spec }: FormerGeneration,
): KubernetesObject {
  const { labels: _, annotations: __, ...metadata } = newest.metadata;
  return {
    apiVersion,
    kind: newest.kind,
    metadata: { ...metadata, generation, ...(labels && { labels }), ...(annotations && { annotations }) },
    ...(spec === undefined ? {} : { spec }),
  } as KubernetesObject;
}

function formerGeneration(object: KubernetesObject): FormerGeneration {
  const { generation = 0, labels, annotations } = object.metadata;
  const { spec } = object as { readonly spec?: unknown };
  return {
    apiVersion: object.apiVersion,
    generation,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(spec === undefined ? {} : { spec }),
  };
}

function isFlat({ spec }: FormerGeneration): boolean {
  return !isDeeper(spec, mostLevels);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1));
}

/** As the `spec` of an object that the API server takes: without what makes it too large, the oldest first. */
export function printKept({ object, newest, inForce, reason, former, rejected }: KeptGenerations): Json {
  const spec = {
    object: { ...object },
    newest,
    ...(inForce !== undefined && { inForce }),
    reason,
    former,
    ...(rejected.length > 0 && {
      rejected: rejected.map(({ generation, proxies, rejections }) => ({
        generation,
        proxies,
        rejections: rejections.slice(0, mostRejections).map((rejection) => ({ ...rejection })),
      })),
    }),
  };
  if (former.length === 0 || Buffer.byteLength(JSON.stringify(spec)) <= mostBytes) return spec;
  return printKept({ object, newest, inForce, reason, former: former.slice(0, -1), rejected } as KeptGenerations);
}

/**
 * Undefined for what is not one. Whoever may write such objects decides what they say: former generations that the API
 * server would not take for this object do not count. Nor does anything in which proxies rejected an object that
 * restricts them, as earlier versions allowed: a generation that they took back is not among the former ones.
 */
export function readKept(namespace: string, spec: unknown, validate: Validate): KeptGenerations | undefined {
  if (!isObject(spec) || !isObject(spec['object'])) return undefined;
  const { object, newest, inForce, reason, former, rejected } = spec;
  const { kind, name, uid } = object as Json;
  const known = kinds.find((each) => each.custom && each.name === kind);
  if (known === undefined || typeof name !== 'string' || typeof uid !== 'string' || !isGeneration(newest))
    return undefined;
  if (restricts(known.name) && listOf(rejected, mostRejected).length > 0) return undefined;
  const isAcceptable = ({ apiVersion, labels, annotations, spec: content }: FormerGeneration): boolean =>
    known.versions.some((version) => apiVersion === `${known.group}/${version}`) &&
    validate({
      apiVersion,
      kind: known.kind,
      metadata: { name, namespace, labels, annotations },
      spec: content,
    }).every(({ severity }) => severity !== 'error');
  return {
    object: { kind: known.name as CustomKindName, name, uid },
    newest,
    ...(isGeneration(inForce) && { inForce }),
    reason: reason === 'Rejected' ? reason : 'Invalid',
    former: listOf(former, mostFormer).flatMap(readFormer).filter(isFlat).filter(isAcceptable),
    rejected: listOf(rejected, mostRejected).flatMap(readRejected),
  };
}

function readFormer(value: Json): readonly FormerGeneration[] {
  const { apiVersion, generation, labels, annotations, spec } = value;
  if (typeof apiVersion !== 'string' || !isGeneration(generation)) return [];
  return [
    {
      apiVersion,
      generation,
      ...(isTexts(labels) && { labels }),
      ...(isTexts(annotations) && { annotations }),
      ...(spec === undefined ? {} : { spec }),
    },
  ];
}

function readRejected({ generation, proxies, rejections }: Json): RejectedGeneration['generations'] {
  if (!isGeneration(generation)) return [];
  return [
    {
      generation,
      proxies: typeof proxies === 'number' ? proxies : 0,
      rejections: readRejections(rejections, mostRejections),
    },
  ];
}

function listOf(value: unknown, most: number): readonly Json[] {
  return Array.isArray(value) ? value.slice(0, most).filter(isObject) : [];
}

function isGeneration(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every((each) => typeof each === 'string');
}

/** Longest name of an object. */
const longestName = 253;
const hashLength = 16;

/**
 * The name of what is kept of an object, in its namespace. Different for all objects: a kind is only letters, and only
 * names with a hash are of the greatest length.
 */
export function nameOfKept(kind: CustomKindName, name: string): string {
  const whole = `${kind.toLowerCase()}-${name}`;
  if (whole.length < longestName) return whole;
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, hashLength);
  const begin = whole.slice(0, longestName - hashLength - 1);
  return `${begin.replace(/[-.]+$/, (end) => '0'.repeat(end.length))}-${hash}`;
}
