import { expect, test } from 'vitest';
import { splitRoutes, REVIEWS, reviews, rule, split } from './shop.ts';
import { Directory } from './sources.ts';

test('the time that a change takes to its proxies is measured, and connecting does not count as one', async () => {
  const directory = await Directory.create();
  await directory.apply(...reviews, rule, split(80, 20));
  const program = await directory.start();
  const proxies = [await program.connect(true), await program.connect(false)];
  const told: number[] = [];
  program.serving.engine.onConverged((ms) => told.push(ms));
  await directory.apply(split(50, 50));
  for (const proxy of proxies)
    await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
  await expect.poll(() => told.length).toBeGreaterThanOrEqual(2);
  for (const ms of told) expect(ms).toBeGreaterThan(0);
});
