import { isObject, type Json, textOf } from '../api/json.ts';
import { isDeeperThan } from '../api/json-depth.ts';

/** What the API server asks, of `admission.k8s.io/v1`: the parts that are read. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: string;
  /** Of the object as it is sent here. */
  readonly group: string;
  readonly kind: string;
  /** Plural. */
  readonly resource: string;
  /** Empty unless a part of an object is written, such as its status. */
  readonly subresource: string;
  /** Empty for an object that has only a `generateName` yet. */
  readonly name: string;
  /** Empty for an object without a namespace. */
  readonly namespace: string;
  readonly object: Json | undefined;
  /** What it replaces; only with UPDATE. */
  readonly oldObject: Json | undefined;
}

/** What the API server is to do with the object. Warnings are shown by kubectl. */
export type Verdict =
  | { readonly allowed: true; readonly warnings?: readonly string[]; readonly patch?: readonly PatchOperation[] }
  | { readonly allowed: false; readonly message: string; readonly warnings?: readonly string[] };

/** RFC 6902. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

const API_VERSION = 'admission.k8s.io/v1';

/** A uid is 36 characters long; it is sent back. */
const LONGEST_UID = 256;

/** Objects of Kubernetes have at most some twenty levels. Whatever looks at deeper ones could exhaust the stack. */
const MOST_LEVELS = 200;

/** What a body asks: one that is to be refused without a closer look, or that is not a request at all. */
export type ReadReview =
  | { readonly request: AdmissionRequest }
  | { readonly refused: string; readonly uid: string }
  | { readonly problem: string };

/** Problems and reasons are one sentence each. Never throws. */
export function readReview(text: string): ReadReview {
  let review: unknown;
  try {
    review = JSON.parse(text);
  } catch {
    return { problem: 'the body is not valid JSON' };
  }
  if (!isObject(review) || review['kind'] !== 'AdmissionReview')
    return { problem: 'the body is not an AdmissionReview' };
  if (review['apiVersion'] !== API_VERSION) return { problem: `apiVersion must be ${API_VERSION}` };
  const { request } = review;
  if (!isObject(request)) return { problem: 'request is missing' };
  const { uid, operation, kind, resource } = request;
  if (typeof uid !== 'string' || uid === '' || uid.length > LONGEST_UID)
    return { problem: `request.uid must be a string of 1 to ${LONGEST_UID} characters` };
  if (typeof operation !== 'string') return { problem: 'request.operation must be a string' };
  if (!isObject(kind) || !isObject(resource)) return { problem: 'request.kind and request.resource must be objects' };
  const objects = ['object', 'oldObject'].map((name) => request[name] ?? undefined);
  if (!objects.every((object) => object === undefined || isObject(object)))
    return { problem: 'request.object and request.oldObject must be objects' };
  const [object, former] = objects as readonly (Json | undefined)[];
  if (isDeeperThan(object, MOST_LEVELS))
    return { refused: `the object has more than ${MOST_LEVELS} levels of maps and lists within each other`, uid };
  // What replaces it may be better.
  const oldObject = isDeeperThan(former, MOST_LEVELS) ? undefined : former;
  return {
    request: {
      uid,
      operation,
      group: textOf(kind['group']),
      kind: textOf(kind['kind']),
      resource: textOf(resource['resource']),
      subresource: textOf(request['subResource']),
      name: textOf(request['name']),
      namespace: textOf(request['namespace']),
      object,
      oldObject,
    },
  };
}

/** The body of the answer. */
export function writeReview(uid: string, verdict: Verdict): string {
  const warnings = boundWarnings(verdict.warnings ?? []);
  const response = {
    uid,
    allowed: verdict.allowed,
    ...(warnings.length > 0 && { warnings }),
    ...(verdict.allowed ? patchOf(verdict.patch ?? []) : { status: refusalOf(verdict.message) }),
  };
  return JSON.stringify({ apiVersion: API_VERSION, kind: 'AdmissionReview', response });
}

function patchOf(patch: readonly PatchOperation[]): object {
  if (patch.length === 0) return {};
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
}

/** The code and reason of a refusal by an admission plugin; the API server writes the webhook's name before the message. */
function refusalOf(message: string): object {
  return { code: 403, reason: 'Forbidden', message };
}

/** The API server cuts each warning, and drops what is over the limit of all, in characters. */
const LONGEST_WARNING = 256;
const LONGEST_WARNINGS = 4_096;

/** Warnings as the API server passes them on: one line each, none cut by it. */
export function boundWarnings(warnings: readonly string[]): readonly string[] {
  const lines = warnings.map((warning) => cut(oneLine(warning), LONGEST_WARNING));
  const kept: string[] = [];
  let room = LONGEST_WARNINGS - LONGEST_WARNING;
  for (const line of lines) {
    room -= [...line].length;
    if (room < 0) break;
    kept.push(line);
  }
  const more = lines.length - kept.length;
  return more === 0 ? kept : [...kept, `and ${more} more warnings; "fairlead check" prints them all`];
}

/** A warning becomes an HTTP header. */
function oneLine(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ');
}

function cut(text: string, longest: number): string {
  const characters = [...text];
  return characters.length <= longest ? text : `${characters.slice(0, longest - 3).join('')}...`;
}
