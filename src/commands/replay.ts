import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Graph, type Draft, type Input, type Write } from '../cache/graph.ts';
import type { Replay } from '../cli/program.ts';
import { UsageError } from '../cli/usage-error.ts';
import { FORMAT, type Line, type RecordedResource, type RecordedWrite, recordedResource } from '../debug/recording.ts';
import { Encoder } from '../envoy/encode/encoder.ts';
import { createProtos } from '../envoy/encode/proto.ts';
import { type Mesh, buildMesh } from '../mesh.ts';
import { version } from '../base/version.ts';

/** `fairlead replay`: whether the recorded inputs make the recorded bytes. Stops at the first commit where they do not. */
export async function replayFile(path: string): Promise<Replay> {
  const lines = createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity });
  try {
    return await replay(parsed(lines, path), path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'EACCES')
      throw new UsageError(`${path} cannot be read: ${message}`);
    throw error;
  } finally {
    lines.close();
  }
}

async function* parsed(lines: AsyncIterable<string>, path: string): AsyncGenerator<Line> {
  let number = 0;
  for await (const line of lines) {
    number++;
    if (line === '') continue;
    try {
      yield JSON.parse(line) as Line;
    } catch {
      throw new UsageError(`${path}:${number}: not a line of a recording; was it cut off?`);
    }
  }
}

async function replay(lines: AsyncIterable<Line>, path: string): Promise<Replay> {
  const replayed = new Replayed();
  let recordedBy: string | undefined;
  const writes: RecordedWrite[] = [];
  const resources: RecordedResource[] = [];
  let commits = 0;
  let begun = false;
  const result = (more: Partial<Replay> = {}): Replay => ({
    commits,
    resources: replayed.compared,
    ...(recordedBy !== undefined && recordedBy !== version && { recordedBy }),
    ...more,
  });
  for await (const line of lines) {
    if (recordedBy === undefined && (line.kind !== 'recording' || line.format !== FORMAT))
      throw new UsageError(`${path} is not a recording that this version can read`);
    switch (line.kind) {
      case 'recording':
        recordedBy = line.version;
        break;
      case 'input':
        writes.push(line);
        break;
      case 'resource':
        resources.push(line.resource);
        break;
      case 'begin':
      case 'commit': {
        const isFirst = line.kind === 'begin';
        const found = isFirst
          ? replayed.begin(writes.splice(0), resources.splice(0))
          : replayed.commit(line.writes, line.resources);
        begun = true;
        if (!isFirst) commits++;
        if (found !== undefined) return result({ difference: { commit: line.commit, ...found } });
        break;
      }
      case 'end':
        return result({ end: line.reason });
    }
  }
  if (!begun) throw new UsageError(`${path} ends before the recording began`);
  return result({ end: 'the file ends here' });
}

type Difference = Omit<NonNullable<Replay['difference']>, 'commit'>;

/** The mesh of a recording, without a server. */
class Replayed {
  compared = 0;
  readonly #graph = new Graph();
  readonly #mesh: Mesh = buildMesh(this.#graph, new Encoder(createProtos()));
  readonly #inputs = inputsOf(this.#mesh);
  /** By the last commit. */
  #changed: RecordedResource[] = [];

  constructor() {
    this.#graph.observe((draft: Draft) => {
      this.#changed = this.#mesh.members.flatMap((collection) =>
        Array.from(draft.changes(collection), ({ before, after }) =>
          recordedResource((after ?? before)!, after !== undefined),
        ),
      );
    });
  }

  begin(writes: readonly RecordedWrite[], resources: readonly RecordedResource[]): Difference | undefined {
    this.#graph.commit(this.#writesOf(writes));
    const computed = this.#mesh.members.flatMap((collection) =>
      Array.from(collection.entries(), ([, member]) => recordedResource(member, true)),
    );
    return this.#compare(resources, computed);
  }

  commit(writes: readonly RecordedWrite[], resources: readonly RecordedResource[]): Difference | undefined {
    this.#graph.commit(this.#writesOf(writes));
    return this.#compare(resources, this.#changed);
  }

  #writesOf(writes: readonly RecordedWrite[]): Write[] {
    return writes.map(({ input, key, value }) => {
      const found = this.#inputs.get(input);
      if (found === undefined) throw new UsageError(`the recording has an input that this version does not: ${input}`);
      return found.write(key, value);
    });
  }

  #compare(recorded: readonly RecordedResource[], computed: readonly RecordedResource[]): Difference | undefined {
    this.compared += recorded.length;
    const left = new Map(computed.map(([place, version]) => [place, version] as const));
    for (const [resource, version] of recorded) {
      const now = left.has(resource) ? (left.get(resource) ?? 'removed') : 'unchanged or absent';
      left.delete(resource);
      if (now !== (version ?? 'removed')) return { resource, recorded: version ?? 'removed', computed: now };
    }
    for (const [resource, version] of left)
      return { resource, recorded: 'unchanged or absent', computed: version ?? 'removed' };
    return undefined;
  }
}

function inputsOf({ inputs: { objects, ...others } }: Mesh): ReadonlyMap<string, Input<unknown>> {
  const all = [...Object.values(objects), ...Object.values(others)] as unknown as Input<unknown>[];
  return new Map(all.map((input) => [input.name, input]));
}
