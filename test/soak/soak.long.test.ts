import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { soak } from './soak.ts';

// Two minutes of `make soak`, which also bounds how long changes take: here they have to arrive.
const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));

test(`under every attack at once honest proxies get every change, in bounded memory and log (SEED=${seed})`, async () => {
  const report = await soak({ seconds: 120, seed, proxies: 100, commuters: 50, services: 300, heapMiB: 768 });
  expect(report).toMatchObject({ died: undefined, missed: 0 });
  expect(report.changes).toBeGreaterThan(10);
  expect(report.peakMemory).toBeLessThan(1.5 * 2 ** 30);
  expect(report.logPerMinute).toBeLessThan(2 ** 20);
}, 300_000);
