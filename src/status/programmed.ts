import { quoteName, quoteWords } from '../api/quote.ts';
import type { Condition } from './conditions.ts';

/** A connected proxy, as far as people want to know who it is. */
export interface ProxyName {
  readonly nodeId: string;
}

/** Part of what an object has changed that a proxy does not take. */
export interface RejectedResource extends ProxyName {
  readonly build: string;
  readonly typeUrl: string;
  readonly name: string;
  /** The proxy's own words. */
  readonly message: string;
}

/** How far the newest generation of an object has come. */
export type Progress =
  /** Every proxy that it concerned has acknowledged it, at one time. `proxies`: how many; 0: unknown. */
  | { readonly state: 'acknowledged'; readonly proxies: number }
  /** It changes nothing for any connected proxy. */
  | { readonly state: 'concernsNobody' }
  /** `proxies`: how many have yet to answer; `waiting`: some of them. */
  | { readonly state: 'underway'; readonly proxies: number; readonly waiting: readonly ProxyName[] }
  /** Some replicas have not said what it means for their proxies. */
  | { readonly state: 'silent'; readonly replicas: readonly string[] }
  /** `proxies`: how many, which may be gone by now; `rejections`: of some of them. `isRecalled`: as said elsewhere, or before a restart. */
  | {
      readonly state: 'rejected';
      readonly proxies: number;
      readonly rejections: readonly RejectedResource[];
      readonly isRecalled?: true;
    };

export interface ProgrammedContext {
  readonly accepted: Condition;
  /** If it is not this generation. */
  readonly inForce: { readonly generation: number } | 'nothing' | undefined;
  /** If it waits for other objects: a sentence about that. */
  readonly waits?: string | undefined;
  /** When the generation was published: RFC 3339. */
  readonly since: string;
  /** Proxies have had time to come back since this replica began to serve. */
  readonly isComplete: boolean;
}

/** Proxies that are named; the others are counted. */
const NAMED = 5;

/** Whether the proxies have what an object says, according to their own acknowledgements. */
export function programmedCondition(
  generation: number,
  progress: Progress,
  { accepted, inForce, waits, since, isComplete }: ProgrammedContext,
): Condition {
  const common = { type: 'Programmed' as const, observedGeneration: generation };
  if (accepted.status === 'False' && accepted.reason !== 'Conflicted')
    return { ...common, status: 'False', reason: accepted.reason, message: `See Accepted. ${effective(inForce)}` };
  if (waits !== undefined)
    return { ...common, status: 'Unknown', reason: 'Waiting', message: `${waits} ${effective(inForce)}` };
  switch (progress.state) {
    case 'acknowledged':
      return {
        ...common,
        status: 'True',
        reason: 'Programmed',
        message: acknowledged(progress.proxies),
        // What is there has the number.
        ...(progress.proxies === 0 && { isDefault: true }),
      };
    case 'concernsNobody':
      return isComplete
        ? { ...common, status: 'True', reason: 'NoProxies', message: 'It changes nothing for any connected proxy.' }
        : { ...common, ...unknownYet, message: 'Proxies that it may concern have time to reconnect.' };
    case 'underway':
      return progress.proxies === 0
        ? { ...common, ...unknownYet, message: 'On its way to proxies.' }
        : { ...common, status: 'Unknown', reason: 'Pending', message: underway(progress, since) };
    case 'silent':
      return {
        ...common,
        status: 'Unknown',
        reason: 'ReplicaSilent',
        message: `No report about it since ${since} from ${listed(progress.replicas)}.`,
      };
    case 'rejected':
      return {
        ...common,
        status: 'False',
        reason: 'Rejected',
        message: `${rejected(progress)}${inForce === undefined ? '' : ` ${effective(inForce)}`}`,
      };
  }
}

/** What has been said of this generation may be true still: of this replica before a restart, or of another one. */
const unknownYet = { status: 'Unknown', reason: 'Pending', isDefault: true } as const;

function acknowledged(proxies: number): string {
  if (proxies === 0) return 'Acknowledged by all proxies that it concerns.';
  return proxies === 1
    ? 'Acknowledged by the proxy that it concerns.'
    : `Acknowledged by all ${proxies} proxies that it concerns.`;
}

function underway({ proxies, waiting }: Extract<Progress, { state: 'underway' }>, since: string): string {
  return `Not acknowledged by ${count(proxies)} since ${since}: ${named(waiting, proxies)}.`;
}

/** What is in force in place of a generation that is not. */
function effective(inForce: ProgrammedContext['inForce']): string {
  if (inForce === 'nothing') return 'Nothing of this object is in force.';
  return inForce === undefined
    ? 'What can be read of it is in force.'
    : `Generation ${inForce.generation} is in force.`;
}

function rejected({ proxies, rejections }: Extract<Progress, { state: 'rejected' }>): string {
  const [first] = rejections;
  const words =
    first === undefined ? '' : ` ${shortType(first.typeUrl)} ${quoteName(first.name)}: ${quoteWords(first.message)}.`;
  return `Rejected by ${count(proxies)} (${named(rejections, proxies)}).${words}`;
}

function listed(replicas: readonly string[]): string {
  const named = replicas.slice(0, NAMED);
  const more = replicas.length - named.length;
  return more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ');
}

function count(proxies: number): string {
  return proxies === 1 ? '1 proxy' : `${proxies} proxies`;
}

function named(proxies: readonly ProxyName[], all: number): string {
  const known = proxies.map(({ nodeId }) => proxyName(nodeId)).filter((name) => name !== '');
  const names = [...new Set(known)].slice(0, NAMED).map(quoteName);
  const more = all - names.length;
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ');
}

/** `pod.namespace` of a node id of Istio's form; any other id as it is. */
export function proxyName(nodeId: string): string {
  const parts = nodeId.split('~');
  return (parts.length === 4 ? parts[2]! : nodeId).slice(0, MAX_NAME);
}

/** Clients choose their ids. */
const MAX_NAME = 253;

function shortType(typeUrl: string): string {
  return quoteName(typeUrl.slice(typeUrl.lastIndexOf('.') + 1));
}
