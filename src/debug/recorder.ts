import { setImmediate } from 'node:timers/promises';
import type { Draft } from '../cache/graph.ts';
import type { Clock } from '../base/clock.ts';
import type { Mesh } from '../mesh.ts';
import { FORMAT, type Line, type RecordedResource, recordedResource, recordedWrite } from './recording.ts';

/** Commits that a slow reader may be behind, and the writes in them. */
const MOST_COMMITS = 1_000;
const MOST_WRITES = 100_000;
/** How long lines are made before other work has its turn. Milliseconds. */
const SLICE_MS = 5;
/** An empty line keeps the connection open for as long as nothing happens. Milliseconds. */
const PULSE_MS = 10_000;

export interface RecorderOptions {
  readonly mesh: Mesh;
  /** Makes a commit happen soon, even if nothing has changed. */
  readonly touch: () => void;
  readonly version: string;
  readonly clock: Clock;
}

/** Records what is written into the graph, and what follows, for one reader at a time. */
export class Recorder {
  readonly #options: RecorderOptions;
  #recording: Recording | undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
    options.mesh.graph.observe((draft) => this.#recording?.published(draft), 'recorder');
  }

  /**
   * Lines of a recording, which begins with the next commit and ends after this many milliseconds. Undefined: another
   * one is under way.
   */
  record(ms: number): AsyncIterable<string> | undefined {
    return this.#recording === undefined ? this.#lines(ms) : undefined;
  }

  async *#lines(ms: number): AsyncGenerator<string> {
    if (this.#recording !== undefined) {
      yield lineOf({ kind: 'end', reason: 'another recording has just begun' });
      return;
    }
    const { version, clock, touch } = this.#options;
    const recording = (this.#recording = new Recording(this.#options));
    const cancels = [clock.after(ms, () => recording.end('it lasted as long as was asked for'))];
    try {
      yield lineOf({ kind: 'recording', format: FORMAT, version, at: clock.date().toISOString() });
      touch();
      let ends = performance.now() + SLICE_MS;
      for (;;) {
        const line = recording.next();
        if (line === undefined) {
          const cancel = clock.after(PULSE_MS, () => recording.wake());
          await recording.more();
          cancel();
          // A wait is a line, so that this ends when nobody reads any more.
          yield '\n';
        } else {
          yield lineOf(line);
          if (line.kind === 'end') return;
        }
        if (performance.now() < ends) continue;
        await setImmediate();
        ends = performance.now() + SLICE_MS;
      }
    } finally {
      for (const cancel of cancels) cancel();
      this.#recording = undefined;
    }
  }
}

function lineOf(line: Line): string {
  return `${JSON.stringify(line)}\n`;
}

class Recording {
  readonly #options: RecorderOptions;
  /** What was there when it began; values are never changed, so references will do. */
  #state: Iterator<Line> | undefined;
  readonly #commits: Extract<Line, { kind: 'commit' }>[] = [];
  #writes = 0;
  #end: string | undefined;
  #wake = (): void => undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  published(draft: Draft): void {
    const { mesh, clock } = this.#options;
    const commit = mesh.graph.revision;
    if (this.#end !== undefined) return;
    if (this.#state === undefined) this.#state = stateOf(mesh, commit);
    else {
      const writes = draft.writes.map(({ input, key, value }) => recordedWrite(input.name, key, value));
      const resources = mesh.members.flatMap((collection) =>
        Array.from(draft.changes(collection), ({ before, after }) =>
          recordedResource((after ?? before)!, after !== undefined),
        ),
      );
      this.#writes += writes.length;
      if (this.#commits.length >= MOST_COMMITS || this.#writes > MOST_WRITES) {
        this.end('the reader is too slow');
        return;
      }
      this.#commits.push({ kind: 'commit', commit, at: clock.date().toISOString(), writes, resources });
    }
    this.wake();
  }

  end(reason: string): void {
    this.#end ??= reason;
    this.wake();
  }

  wake(): void {
    this.#wake();
  }

  more(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  next(): Line | undefined {
    const state = this.#state?.next();
    if (state !== undefined && state.done !== true) return state.value;
    const commit = this.#commits.shift();
    if (commit !== undefined) {
      this.#writes -= commit.writes.length;
      return commit;
    }
    return this.#end === undefined ? undefined : { kind: 'end', reason: this.#end };
  }
}

function stateOf(mesh: Mesh, commit: number): Iterator<Line> {
  const inputs = [...Object.values(mesh.inputs.objects), ...otherInputs(mesh)].map(
    (input) => [input.name, [...input.entries()]] as const,
  );
  const members = mesh.members.map((collection) => Array.from(collection.entries(), ([, member]) => member));
  return (function* (): Generator<Line> {
    for (const [name, entries] of inputs)
      for (const [key, value] of entries) yield { kind: 'input', ...recordedWrite(name, key, value) };
    for (const list of members)
      for (const member of list) {
        const resource: RecordedResource = recordedResource(member, true);
        yield { kind: 'resource', resource };
      }
    yield { kind: 'begin', commit };
  })();
}

function otherInputs({ inputs: { objects: _, ...others } }: Mesh) {
  return Object.values(others);
}
