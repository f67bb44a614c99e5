/**
 * Shows where answers differ from the recorded ones: `node test/truth/compare.ts [-t] [-n LINES] [NAME-PART...]`;
 * `-t` shows telemetry too.
 */
import { parseArgs } from 'node:util';
import { caseNames, runCase } from './cases.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { telemetry: { type: 'boolean', short: 't' }, lines: { type: 'string', short: 'n', default: '12' } },
});
const limit = Number(values.lines);
const chosen = caseNames().filter(
  (name) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
);
let equal = 0;
for (const name of chosen) {
  let lines: readonly string[];
  try {
    const verdict = runCase(name);
    lines = values.telemetry
      ? [...verdict.primary, ...verdict.telemetry.map((line) => `(telemetry) ${line}`)]
      : verdict.primary;
  } catch (error) {
    lines = [`failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
  if (lines.length === 0) {
    equal++;
    continue;
  }
  console.log(`DIFFERENT ${name}: ${lines.length}`);
  for (const line of lines.slice(0, limit)) console.log(`  ${line}`);
}
console.log(`${equal} of ${chosen.length} equal`);
