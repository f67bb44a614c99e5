import { beforeAll, expect, test } from 'vitest';
import { closeGateway, openGateway } from '../bookshop.ts';
import type { RunningNode } from '../node.ts';
import { isWhole, pageAt } from './page.ts';

/** Deletions after which a gateway that has lost nothing will not lose anything. */
const MOST_TRIES = 3;

export function ends(node: () => RunningNode): void {
  const kubectl = (...args: string[]): Promise<string> => node().kubectl(...args);
  beforeAll(() => node().apply(NAMESPACE));

  /** A request of three seconds whose gateway is deleted meanwhile: what is wrong with the answer. */
  async function askWhileDeleting(origin: string, name: string): Promise<string> {
    await expect.poll(() => pageAt(origin).catch(() => undefined)).toMatchObject({ service: 'storefront' });
    const pods = (await kubectl('-n', name, 'get', 'pods', '-o', 'name')).trim().split('\n');
    const answer = fetch(`${origin}/slow`).then(async (response) => isWhole(response.status, await response.text()));
    const [problem] = await Promise.all([
      answer.then(
        () => '',
        (error: unknown) => String(error),
      ),
      kubectl('-n', name, 'delete', ...pods, '--wait=false'),
    ]);
    await kubectl('-n', name, 'wait', '--for=delete', ...pods, '--timeout=60s');
    return problem;
  }

  test('finishes what takes longer than its drain, if it waits for connections', { timeout: 300_000 }, async () => {
    const drain = { terminationDrainDuration: '1s' };
    const patient = { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true', MINIMUM_DRAIN_DURATION: '1s' };
    const [hurried, waiting] = await Promise.all([
      openGateway(node(), 'hurried', drain),
      openGateway(node(), 'patient', { ...drain, proxyMetadata: patient }),
    ]);
    expect(await askWhileDeleting(waiting, 'patient')).toBe('');
    let lost = '';
    for (let tries = 0; tries < MOST_TRIES && lost === ''; tries++) lost = await askWhileDeleting(hurried, 'hurried');
    expect(lost).not.toBe('');
    for (const name of ['hurried', 'patient']) await closeGateway(node(), name);
  });

  test.for([
    { name: 'native', how: 'by itself', native: 'true', last: '' },
    { name: 'classic', how: 'once it tells its proxy', native: 'false', last: QUIT },
  ])('completes: a Job with a $name sidecar, $how', { timeout: 120_000 }, async ({ name, native, last }) => {
    await node().apply(job(name, native, `${COUNT}\n${last}`));
    await kubectl('-n', 'jobs', 'wait', '--for=condition=Complete', `job/${name}`, '--timeout=90s');
    expect(await kubectl('-n', 'jobs', 'logs', `job/${name}`, '-c', 'count')).toContain('copies: 7');
    const pods = ['-n', 'jobs', 'get', 'pods', '-l', `job-name=${name}`];
    expect(await kubectl(...pods, '-o', 'jsonpath={.items[*].status.phase}')).toBe('Succeeded');
  });
}

const NAMESPACE = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'jobs', labels: { 'istio-injection': 'enabled' } },
});

/** Through the mesh: by a name that only it leads to the right port. */
const COUNT = `
const answer = await fetch('http://stock.bookshop/');
console.log('copies:', (await answer.json()).copies);
`;

const QUIT = `await fetch('http://127.0.0.1:15020/quitquitquit', { method: 'POST' });`;

function job(name: string, native: string, program: string): string {
  return JSON.stringify({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'jobs' },
    spec: {
      backoffLimit: 0,
      template: {
        metadata: {
          annotations: {
            'sidecar.istio.io/nativeSidecar': native,
            // A native sidecar is always first.
            'proxy.istio.io/config': JSON.stringify({ holdApplicationUntilProxyStarts: true }),
          },
        },
        spec: {
          restartPolicy: 'Never',
          containers: [
            {
              name: 'count',
              image: 'bookshop:dev',
              imagePullPolicy: 'Never',
              command: ['node', '--input-type=module', '--eval', program],
            },
          ],
        },
      },
    },
  });
}
