#!/usr/bin/env node
// Import nothing else here: the other modules do not load on the Node versions that this one refuses.
import { refusalOf } from './base/node-version.ts';

const refusal = refusalOf(process.versions.node);
if (refusal === undefined) {
  const { runProcess } = await import('./cli/process.ts');
  await runProcess();
} else {
  process.stderr.write(`${refusal}\n`);
  process.exitCode = 1;
}
