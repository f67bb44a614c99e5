import { randomInt } from 'node:crypto';
import { BOUNDS, runFaults } from './run.ts';

// Part of `make soak`: rounds of faults, each with every fault once, about 16 s long; FAULT_ROUNDS, and a FAIRLEAD_SEED
// that is printed. With so many services, lists that lack most of them are doubted. Exits 1 if anything is lost.
const seed = Number(process.env['FAIRLEAD_SEED'] ?? randomInt(2 ** 31));
const rounds = Number(process.env['FAULT_ROUNDS'] ?? 110);
console.log(`${rounds} rounds of faults of the API server, FAIRLEAD_SEED=${seed}`);
const report = await runFaults({ seed, services: 12, rounds });
const { changes, requests, failures, usurpations, hits, mostConnections, memory } = report;
const bounds: readonly (readonly [name: string, value: number, most: number])[] = [
  [`of ${requests} requests lost in ${changes} changes`, failures.length, 0],
  ['conditions written by a replica that did not lead', usurpations.length, 0],
  ['connections of a replica to the API server', mostConnections, BOUNDS.connections],
  ['memory of a replica, MiB', Math.round(memory / 2 ** 20), BOUNDS.memoryMiB],
];
for (const [name, value, most] of bounds)
  console.log(`${value <= most ? 'ok  ' : 'MORE'} ${name}: ${value} (bound ${most})`);
console.log(hits);
for (const line of [...failures, ...usurpations]) console.log(line);
process.exit(bounds.every(([, value, most]) => value <= most) ? 0 : 1);
