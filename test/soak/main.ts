import { randomInt } from 'node:crypto';
import { soak } from './soak.ts';

// What `make soak` runs: half an hour, or SECONDS_OF_SOAK, with a SEED that is printed. Exits 1 if a bound is broken.
const seconds = Number(process.env['SECONDS_OF_SOAK'] ?? 1_800);
const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));
console.log(`${seconds} s, SEED=${seed}`);
const report = await soak({ seconds, seed, proxies: 100, commuters: 50, services: 1_000, heapMiB: 1_024 });
const sorted = [...report.delays].sort((a, b) => a - b);
const at = (part: number): number =>
  Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
const bounds: readonly (readonly [name: string, value: number, most: number])[] = [
  ['changes that never arrived', report.missed, 0],
  ['longest delay of a change, ms', at(1), 2_000],
  ['peak memory, MiB', Math.round(report.peakMemory / 2 ** 20), 2_048],
  ['log of a minute, KiB', Math.round(report.logPerMinute / 1024), 1_024],
];
console.log(`${report.changes} changes; delay p50 ${at(0.5)} ms, p99 ${at(0.99)} ms; ${report.reconnects} reconnects`);
for (const line of report.slow) console.log(`slow ${line}`);
for (const [name, value, most] of bounds)
  console.log(`${value <= most ? 'ok  ' : 'MORE'} ${name}: ${value} (bound ${most})`);
if (report.died !== undefined) console.log(`MORE the server ended: ${report.died}`);
process.exit(report.died === undefined && bounds.every(([, value, most]) => value <= most) ? 0 : 1);
