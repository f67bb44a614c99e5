/** Rewrites the expected files of all golden cases, and removes those without a case: `node test/golden/write.ts`. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createValidator } from '../../src/api/validate.ts';
import { expectedFile, goldenNames, orphans, readGoldenCase } from './case.ts';
import { printExpected } from './expected.ts';
import { meshOf } from './mesh-of.ts';

const validate = createValidator();
for (const name of goldenNames()) {
  const golden = readGoldenCase(name, validate);
  const text = printExpected(meshOf(golden), golden);
  const file = expectedFile(name);
  if (read(file) === text) continue;
  writeFileSync(file, text);
  console.log(`written: ${name}`);
}
for (const file of orphans()) {
  rmSync(file);
  console.log(`removed: ${file}`);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
