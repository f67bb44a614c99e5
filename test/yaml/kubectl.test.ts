import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { splitDocuments } from '../../src/directory/split.ts';
import { readDocument } from '../../src/yaml/document.ts';
import { run } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { corpus } from './corpus.ts';
import { seed } from '../harness/seed.ts';
import { runs } from '../../src/testing/runs.ts';

interface Reading {
  /** Up to the first that is refused. */
  readonly documents: readonly unknown[];
  readonly error?: string;
  /** Something follows a document, and is silently dropped. */
  readonly dropped?: boolean;
}

/** What is refused although kubectl takes it: keys that are there twice, of which it takes the last one as it stands. */
const STRICTER = ['appears twice', 'has a key that is not a string', 'is a number that JSON cannot hold'];

/** What is taken although kubectl refuses it: text behind a marker on its line, and an end without a document. */
const LAXER = [/^---[ \t]*[^\s#]/m, /^(---.*)?\s*\.\.\./m];

function ours(text: string): Reading {
  const documents: unknown[] = [];
  for (const document of splitDocuments(text)) {
    const content = readDocument(document.text);
    if ('broken' in content) return { documents, error: content.broken.message };
    if (content.value !== null) documents.push(content.value);
  }
  return { documents };
}

/** What is wrong with our reading; undefined when nothing is. */
function difference(text: string, kubectl: Reading): object | undefined {
  const reading = ours(text);
  const mayBeRefused = kubectl.error !== undefined || kubectl.dropped === true;
  if (reading.error !== undefined && (mayBeRefused || STRICTER.includes(reading.error))) return undefined;
  if (kubectl.error !== undefined && LAXER.some((pattern) => pattern.test(text))) return undefined;
  const same = reading.error === undefined && kubectl.error === undefined;
  return same && isDeepStrictEqual(asJson(reading.documents), asJson(kubectl.documents))
    ? undefined
    : { text, kubectl, reading };
}

function asJson(documents: readonly unknown[]): unknown {
  return JSON.parse(JSON.stringify(documents));
}

/** Texts of the corpus with something inserted, removed or replaced. */
const mutated = fc
  .tuple(
    fc.array(fc.constantFrom(...corpus), { minLength: 1, maxLength: 2 }).map((texts) => texts.join('')),
    fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        removed: fc.nat(3),
        added: fc.constantFrom(
          ...['', ' ', '  ', '\n', '\n  ', '\t', '\r\n', '\u2028', '\u0085', ':', ': ', '- ', ',', '[', ']', '{', '}'],
          ...['"', "'", '\\', '#', ' #', '&a ', '*a', '!', '!!str ', '!!int ', '|', '>', '?', '%', '---\n', '<<: '],
          ...['a', '1', '0', '_', '.', 'e', 'ä'],
        ),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([text, changes]) =>
    changes.reduce((changed, { at, removed, added }) => {
      const start = Math.floor(at * changed.length);
      return changed.slice(0, start) + added + changed.slice(start + removed);
    }, text),
  )
  // Of what may be JSON and is not, kubectl takes the blanks before it away, tabs too.
  .filter((text) => text.isWellFormed() && !/^[\s\x85]+\{/.test(text));

withPeers(['go'], 'a file is read as kubectl reads it', () => {
  const directory = mkdtempSync(join(tmpdir(), 'fairlead-yaml-'));
  const program = join(directory, 'kubectl-reads');
  // The module is that of the kubectl which tests run, so its decoder is the same.
  const module = resolve('tools/peers/kubernetes');
  beforeAll(async () => {
    const built = await run('go', ['build', '-C', module, '-o', program, resolve('test/yaml/kubectl.go')]);
    expect(built).toMatchObject({ code: 0 });
  }, 600_000);
  afterAll(() => rmSync(directory, { recursive: true }));

  const kubectl = async (texts: readonly string[]): Promise<readonly Reading[]> => {
    const { stdout, code } = await run(program, [], { input: JSON.stringify(texts) });
    expect(code).toBe(0);
    return JSON.parse(stdout) as readonly Reading[];
  };
  const differences = async (texts: readonly string[]): Promise<readonly object[]> => {
    const readings = await kubectl(texts);
    return texts.flatMap((text, index) => difference(text, readings[index]!) ?? []);
  };

  test('whatever scalars, indentation, quotes, lists and maps in it look like', async () => {
    expect(await differences(corpus)).toEqual([]);
  });

  test('and wherever something is inserted, removed or replaced in it', async () => {
    // The same texts in every run; SEED and RUNS are for more of them.
    const texts = fc.sample(mutated, { seed, numRuns: runs(5_000) });
    expect((await differences(texts)).slice(0, 10), `FAIRLEAD_SEED=${seed}`).toEqual([]);
  });
});
