/**
 * Writes the slowest test files of the last `make test` (or of the reports given as arguments) into the table of
 * CONTRIBUTING.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const PAGE = join(ROOT, 'CONTRIBUTING.md');
const ROWS = 20;
const [BEGIN, END] = ['<!-- slowest tests: make slowest -->', '<!-- end of slowest tests -->'];

/** The part of vitest's JSON report that is used. */
interface Report {
  readonly testResults: readonly {
    /** The path of the file. */
    readonly name: string;
    /** Milliseconds. */
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly object[];
  }[];
}

const paths = process.argv.slice(2);
const reports = paths.length > 0 ? paths : [join(ROOT, '.cache/test.json')];
const files = reports
  .flatMap((path) => (JSON.parse(readFileSync(path, 'utf8')) as Report).testResults)
  .map(({ name, startTime, endTime, assertionResults }) => ({
    file: relative(ROOT, name),
    seconds: (endTime - startTime) / 1000,
    tests: assertionResults.length,
  }))
  .sort((a, b) => b.seconds - a.seconds);

const total = files.reduce((sum, { seconds }) => sum + seconds, 0);
const table = [
  `| of ${files.length} files, which take ${Math.round(total / 60)} minutes one after the other | seconds | tests |`,
  '|---|---|---|',
  ...files.slice(0, ROWS).map(({ file, seconds, tests }) => `| \`${file}\` | ${Math.round(seconds)} | ${tests} |`),
];

const page = readFileSync(PAGE, 'utf8');
const [before, rest] = [page.slice(0, page.indexOf(BEGIN)), page.slice(page.indexOf(END))];
if (page.indexOf(BEGIN) < 0 || page.indexOf(END) < 0) throw new Error(`${PAGE} has no place for the table`);
writeFileSync(PAGE, `${before}${BEGIN}\n\n${table.join('\n')}\n\n${rest}`);
