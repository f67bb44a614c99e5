/**
 * Reads vitest's JSON reports (paths as arguments), lists every test that did not run and why, then every failure, and
 * ends with one line of numbers. Fails if a test failed, and with FAIRLEAD_REQUIRE_PEERS=1 also if one was skipped.
 */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** The part of vitest's JSON report that is used. */
interface Report {
  readonly success: boolean;
  readonly testResults: readonly {
    /** The path of the file. */
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

interface Summary {
  passed: number;
  failed: number;
  skipped: number;
  /** Reason -> tests that did not run because of it. */
  readonly reasons: Map<string, string[]>;
  /** What failed, and how: tests, and outside of tests files that cannot be loaded and hooks. */
  readonly failures: string[];
}

const NO_REASON = 'skipped: without a reason';

function add(summary: Summary, report: Report): void {
  const failedBefore = summary.failed;
  for (const { name, status, message, assertionResults } of report.testResults) {
    const file = relative(process.cwd(), name);
    for (const { ancestorTitles, title, status, failureMessages = [] } of assertionResults) {
      if (status === 'passed') summary.passed++;
      else if (status === 'failed') {
        summary.failed++;
        summary.failures.push(
          [[file, ...ancestorTitles, title].join(' > '), ...failureMessages.map(shortened)].join('\n'),
        );
      } else {
        summary.skipped++;
        const { reason, titles } = splitReason([...ancestorTitles, title]);
        const tests = summary.reasons.get(reason) ?? [];
        summary.reasons.set(reason, [...tests, [file, ...titles].join(' > ')]);
      }
    }
    if (status === 'failed' && !assertionResults.some((test) => test.status === 'failed')) {
      summary.failed++;
      summary.failures.push(`${file}: ${message || 'a hook failed'}`);
    }
  }
  if (!report.success && summary.failed === failedBefore) {
    summary.failed++;
    summary.failures.push('an error outside of every test file');
  }
}

/** Of one failure. */
const MOST_LINES = 30;
const MOST_COLUMNS = 300;

function shortened(message: string): string {
  const lines = stripVTControlCharacters(message).split('\n');
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${line.slice(0, MOST_COLUMNS)}`);
  return [...shown, ...(lines.length > MOST_LINES ? [`  ... ${lines.length - MOST_LINES} more lines`] : [])].join('\n');
}

/** `withPeers` puts the reason in the title of the suite: `Envoy (skipped: no Envoy. ...)`. */
function splitReason(titles: readonly string[]): { reason: string; titles: string[] } {
  let reason = NO_REASON;
  const rest = titles.map((title) =>
    title.replace(/ ?\((skipped: .*)\)$/, (_, found: string) => {
      reason = found;
      return '';
    }),
  );
  return { reason, titles: rest };
}

const summary: Summary = { passed: 0, failed: 0, skipped: 0, reasons: new Map(), failures: [] };
for (const path of process.argv.slice(2)) add(summary, JSON.parse(readFileSync(path, 'utf8')) as Report);

for (const [reason, tests] of summary.reasons) console.log([reason, ...tests].join('\n  '));
for (const failure of summary.failures) console.log(`failed: ${failure}`);
console.log(`${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`);

const required = process.env['FAIRLEAD_REQUIRE_PEERS'] === '1';
if (required && summary.skipped > 0) console.error('FAIRLEAD_REQUIRE_PEERS=1: no test may be skipped');
if (summary.failed > 0 || (required && summary.skipped > 0)) process.exitCode = 1;
