import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { service, virtualService } from './objects.ts';
import { Program, get } from './program.ts';
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

test('an error that nothing handles is said and counted, and proxies are served on; so many end the process in order', async () => {
  const directory = await Directory.create();
  await directory.apply(...reviews, rule, split(80, 20));
  const errors = new EventEmitter();
  const program = await Program.start({ directory: [directory.path] }, { errors, onEnd: () => {} });
  const proxy = await program.connect(true);
  onTestFinished(() => proxy.close());
  errors.emit('uncaughtException', new Error('in a timer'));
  expect(await program.logged('Unexpected error')).toMatchObject({ level: 'error' });
  await directory.apply(split(50, 50));
  await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
  await expect
    .poll(async () => (await get(program.serving.ports.monitoring, '/metrics')).body, { timeout: PATIENCE })
    .toMatch(/^fairlead_unexpected_errors_total 1$/m);
  for (let i = 0; i < 6_000; i++) errors.emit('uncaughtException', new Error('in a timer'));
  await expect(program.serving.ended).rejects.toThrow('more than 6000 unexpected errors within a minute');
});
