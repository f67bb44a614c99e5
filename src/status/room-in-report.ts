import { mostReported, printObject, type ReplicaReport, type ReportedObject } from './replica-report.ts';

/** Of 1.5 MB that the API server takes, for objects. */
const mostBytes = 1_200_000;
/** What a namespace may add when it is its turn. What it does not need is added to its next turn. */
const turnBytes = 1_024;
/** Namespaces that are named as cut. */
const mostCut = 1_000;

/**
 * As many objects as a report has room for. Namespaces take turns, each with the same number of bytes, so that one with
 * many objects, or long refusals, takes nothing of what others need.
 */
export function roomFor(
  byNamespace: ReadonlyMap<string, Iterable<ReportedObject>>,
): Pick<ReplicaReport, 'objects' | 'cut'> {
  const shares = Array.from(byNamespace, ([namespace, objects]) => new Share(namespace, objects));
  const objects: ReportedObject[] = [];
  let room = mostBytes;
  for (const share of turns(shares)) {
    if (share.size > room || objects.length === mostReported) break;
    room -= share.size;
    objects.push(share.take());
  }
  const cut = shares.filter((share) => !share.isEmpty).map(({ namespace }) => namespace);
  return { objects, cut: cut.length > mostCut ? ['*'] : cut };
}

/** Shares from which the next object may be taken. */
function* turns(shares: readonly Share[]): Generator<Share> {
  while (shares.some((share) => !share.isEmpty))
    for (const share of shares) {
      share.allowed += turnBytes;
      while (!share.isEmpty && share.size <= share.allowed) yield share;
    }
}

/** What is to be reported of a namespace. */
class Share {
  readonly namespace: string;
  /** Bytes. */
  allowed = 0;
  /** Of the next object. Bytes. */
  size = 0;
  readonly #objects: Iterator<ReportedObject>;
  #next: ReportedObject | undefined;

  constructor(namespace: string, objects: Iterable<ReportedObject>) {
    this.namespace = namespace;
    this.#objects = objects[Symbol.iterator]();
    this.#advance();
  }

  get isEmpty(): boolean {
    return this.#next === undefined;
  }

  /** To be called if there is one. */
  take(): ReportedObject {
    const taken = this.#next!;
    this.allowed -= this.size;
    this.#advance();
    return taken;
  }

  #advance(): void {
    const { done, value } = this.#objects.next();
    this.#next = done === true ? undefined : (value as ReportedObject);
    this.size = this.#next === undefined ? 0 : Buffer.byteLength(JSON.stringify(printObject(this.#next)));
  }
}
