/** Rewrites the bootstraps of all cases, and removes those without a case: `node test/bootstrap/write.ts`. */
import { rmSync, writeFileSync } from 'node:fs';
import { caseNames, expectedFile, orphans, printBootstrap, readCase } from './case.ts';

for (const name of caseNames()) writeFileSync(expectedFile(name), printBootstrap(readCase(name).bootstrap));
for (const file of orphans()) rmSync(expectedFile(file.replace(/\.json$/, '')));
