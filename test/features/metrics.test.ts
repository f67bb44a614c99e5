import { expect, test } from 'vitest';
import { get } from './program.ts';
import { splitRoutes, REVIEWS, reviews, rule, split } from './shop.ts';
import { Directory } from './sources.ts';
import { PATIENCE } from './waiters.ts';

test('the time that a change takes to its proxies is measured, and connecting does not count as one', async () => {
  const directory = await Directory.create();
  await directory.apply(...reviews, rule, split(80, 20));
  const program = await directory.start();
  const proxies = [await program.connect(true), await program.connect(false)];
  /** How many changes arrived, and how long all of them took. */
  const measured = async (): Promise<readonly number[]> => {
    const { body } = await get(program.serving.ports.monitoring, '/metrics');
    return ['count', 'sum'].map((what) =>
      Number(new RegExp(`^pilot_proxy_convergence_time_${what} (.*)$`, 'm').exec(body)?.[1]),
    );
  };
  expect(await measured()).toEqual([0, 0]);
  await directory.apply(split(50, 50));
  for (const proxy of proxies)
    await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
  // The page is as it was for a second.
  await expect.poll(async () => (await measured())[0], { timeout: PATIENCE }).toBeGreaterThanOrEqual(2);
  expect((await measured())[1]).toBeGreaterThan(0);
});
