import { randomInt } from 'node:crypto';
import { runHitless } from './run.ts';

// Part of `make soak`: a thousand changes over either kind of ADS, with a FAIRLEAD_SEED that is printed, or CHANGES.
// Exits 1 if a request is lost, or if none is without the barrier.
const seed = Number(process.env['FAIRLEAD_SEED'] ?? randomInt(2 ** 31));
const changes = Number(process.env['CHANGES'] ?? 1_000);
const LOST = 5;
console.log(`${changes} changes under load, FAIRLEAD_SEED=${seed}`);
let ok = true;
for (const delta of [true, false]) {
  for (const unguarded of [false, true]) {
    const report = await runHitless({ seed, delta, changes, unguarded, enough: unguarded ? LOST : 100 });
    const { failures, rejections, requests } = report;
    const total = Object.values(requests).reduce((sum, count) => sum + count, 0);
    const passed = unguarded ? failures.length >= LOST : failures.length === 0 && rejections.length === 0;
    ok &&= passed;
    const how = `${delta ? 'delta' : 'state of the world'}${unguarded ? ', without the barrier' : ''}`;
    console.log(
      `${passed ? 'ok  ' : 'FAIL'} ${how}: ${failures.length} of ${total} requests lost in ${report.changes} changes`,
    );
    if (unguarded) continue;
    for (const [kind, count] of Object.entries(requests)) console.log(`     ${count} ${kind}`);
    for (const line of [...failures, ...rejections]) console.log(line);
  }
}
process.exit(ok ? 0 : 1);
