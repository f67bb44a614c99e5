/** Rewrites the expected files of injection, and removes those without a case: `node test/injection/write.ts`. */
import { rmSync, writeFileSync } from 'node:fs';
import { caseNames, expectedFile, orphans, printResult, readCase } from './case.ts';

for (const name of caseNames()) {
  const { injector, request } = readCase(name);
  writeFileSync(expectedFile(name), printResult(injector.inject(request)));
}
for (const file of orphans()) rmSync(file);
