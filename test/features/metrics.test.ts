import { expect, test } from 'vitest';
import { service, virtualService } from './objects.ts';
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

test('what arrives, what follows from it and what is sent are counted by the names of Istio', async () => {
  const directory = await Directory.create();
  await directory.apply(...reviews, rule, split(80, 20));
  await directory.apply(service('empty', '10.96.0.7'), virtualService('other', { hosts: ['reviews'], http: [] }));
  const program = await directory.start();
  const proxy = await program.connect(true);
  await directory.apply(split(50, 50));
  await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
  await expect
    .poll(async () => (await get(program.serving.ports.monitoring, '/metrics')).body, { timeout: PATIENCE })
    .toMatch(/^pilot_eds_no_instances 1$/m);
  await directory.delete(service('empty', '10.96.0.7'));
  await program.committed(() => expect(program.object('Service', 'shop', 'empty')).toBeUndefined());
  await expect
    .poll(async () => (await get(program.serving.ports.monitoring, '/metrics')).body.split('\n'), { timeout: PATIENCE })
    .toEqual(
      expect.arrayContaining([
        'pilot_inbound_updates{type="svc"} 2',
        'pilot_inbound_updates{type="svcdelete"} 1',
        'pilot_inbound_updates{type="eds"} 1',
        'pilot_push_triggers{type="proxy"} 1',
        'pilot_eds_no_instances 0',
        'pilot_virt_services 2',
        'pilot_xds_expired_nonce{type="cds"} 0',
        expect.stringMatching(/^pilot_xds_config_size_bytes_count\{type="rds"\} [1-9]/),
        expect.stringMatching(/^pilot_xds_send_time_count [1-9]/),
        expect.stringMatching(/^pilot_push_triggers\{type="config"\} [1-9]/),
        expect.stringMatching(/^pilot_total_rejected_configs\{type="VirtualService"\} 1/),
      ]),
    );
});
