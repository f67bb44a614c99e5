import { afterAll, beforeAll, expect, test } from 'vitest';
import { pathOf } from '../../peers/peer.ts';
import { poll } from '../../peers/process.ts';
import { SYSTEM } from '../bookshop.ts';
import { NODE } from '../configuration.ts';
import type { RunningNode } from '../node.ts';

/** What an agent says of itself on port 15020, `/status`. */
interface AgentStatus {
  readonly connected: boolean;
  readonly servesConfigurationOf?: string;
  readonly certificate: string;
}

/** Tests in turn: each begins with what the one before it has left. */
export function killedPods(node: () => RunningNode): void {
  const kubectl = (...args: string[]): Promise<string> => node().kubectl('-n', NAMESPACE, ...args);
  const ready = (...pods: string[]): Promise<string> =>
    kubectl('wait', '--for=condition=Ready', ...pods.map((pod) => `pod/${pod}`), '--timeout=90s');
  const scale = async (replicas: number): Promise<void> => {
    await node().kubectl('-n', SYSTEM, 'scale', 'deployment/fairlead', `--replicas=${replicas}`);
    if (replicas > 0) await node().kubectl('-n', SYSTEM, 'rollout', 'status', 'deployment/fairlead', '--timeout=120s');
    else await node().kubectl('-n', SYSTEM, 'wait', '--for=delete', 'pod', '-l', FAIRLEAD, '--timeout=120s');
  };

  beforeAll(async () => {
    await node().apply(NAMESPACES);
    // Pods get their sidecars now; those that wait start when Fairlead is away.
    await node().apply(
      [pod('agent-killed'), pod('envoy-killed'), pod('waits', true), pod('given-up', true, 600)].join('\n---\n'),
    );
    await ready('agent-killed', 'envoy-killed');
    await scale(0);
  }, 300_000);
  afterAll(async () => {
    await scale(2);
    await node().kubectl('delete', 'namespace', NAMESPACE, '--wait=false');
  }, 180_000);

  /** Of the Pod's proxy. */
  const state = async <T>(name: string, path: string): Promise<T> => {
    const list = await kubectl('get', 'pod', name, '-o', 'jsonpath={.status.initContainerStatuses}');
    const proxy = (JSON.parse(list) as { name: string }[]).find((container) => container.name === 'istio-proxy');
    return path
      .split('.')
      .reduce((value, member) => (value as Record<string, unknown>)?.[member], proxy as unknown) as T;
  };
  const restarted = (name: string): Promise<true> =>
    poll('a restart', async () => ((await state<number>(name, 'restartCount')) > 0 ? true : undefined), {
      timeoutMs: 60_000,
    });
  /** The origin of its agent, on the port for such questions. */
  const agentOf = async (name: string): Promise<string> => {
    const address = await kubectl('get', 'pod', name, '-o', 'jsonpath={.status.podIP}');
    return `http://127.0.0.1:${await node().forward(address, 15_020)}`;
  };
  const statusOf = async (name: string): Promise<AgentStatus> =>
    (await (await fetch(`${await agentOf(name)}/status`)).json()) as AgentStatus;
  const ctr = (...args: string[]): Promise<string> =>
    node().run(pathOf('ctr'), ['--address', NODE.containerdSocket, '--namespace', 'k8s.io', ...args]);
  const containerOf = async (name: string): Promise<string> =>
    (await state<string>(name, 'containerID')).split('//')[1]!;
  /** As the kernel does when memory is short: nobody is asked. */
  const killContainer = async (name: string): Promise<void> => {
    await ctr('tasks', 'kill', '--signal', 'SIGKILL', await containerOf(name));
  };

  test('is ready again without the control plane if its agent was killed', { timeout: 120_000 }, async () => {
    await killContainer('agent-killed');
    await restarted('agent-killed');
    await ready('agent-killed');
    expect(await statusOf('agent-killed')).toMatchObject({
      connected: false,
      servesConfigurationOf: expect.any(String) as string,
      certificate: 'valid',
    });
  });

  test(
    'is ready again without the control plane if its Envoy was killed, and says so',
    { timeout: 120_000 },
    async () => {
      const kill = `for (const id of fs.readdirSync('/proc').filter(Number))
        if (fs.readFileSync(\`/proc/\${id}/comm\`, 'utf8') === 'envoy\\n') process.kill(+id, 'SIGKILL');`;
      await kubectl('exec', 'envoy-killed', '-c', 'istio-proxy', '--', 'node', '-e', kill);
      await restarted('envoy-killed');
      await ready('envoy-killed');
      expect(await state('envoy-killed', 'lastState.terminated')).toMatchObject({
        exitCode: 137,
        message: expect.stringContaining('Envoy ended by SIGKILL') as string,
      });
    },
  );

  test('when it starts without the control plane, waits and says for what', { timeout: 120_000 }, async () => {
    for (const name of ['waits', 'given-up'])
      await kubectl('patch', 'pod', name, '--type=json', '-p', '[{"op":"remove","path":"/spec/schedulingGates"}]');
    for (const name of ['waits', 'given-up']) {
      await expect
        .poll(() => kubectl('logs', name, '-c', 'istio-proxy').catch(() => ''), { timeout: 60_000 })
        .toContain('No certificate from the control plane; trying again');
      expect(await statusOf(name)).toMatchObject({
        connected: false,
        certificate: expect.not.stringMatching('valid') as string,
      });
      expect(await state(name, 'ready')).toBe(false);
    }
  });

  test('ends at once if it never had a certificate', { timeout: 120_000 }, async () => {
    await kubectl('delete', 'pod', 'given-up', '--wait=false');
    // Far less than their grace period.
    await kubectl('wait', '--for=delete', 'pod/given-up', '--timeout=60s');
  });

  test(
    'without a certificate waits again, and is ready once the control plane is back',
    { timeout: 240_000 },
    async () => {
      await killContainer('waits');
      await restarted('waits');
      await scale(2);
      await ready('waits');
      expect(await statusOf('waits')).toMatchObject({ connected: true, certificate: 'valid' });
      const agent = await agentOf('agent-killed');
      await expect
        .poll(async () => (await fetch(`${agent}/status`)).json())
        .toMatchObject({ connected: true, certificate: 'valid' });
    },
  );

  test('while it drains makes room for another one, and leaves nothing that runs', { timeout: 240_000 }, async () => {
    const [id, agent] = [await containerOf('waits'), await agentOf('waits')];
    const running = (): Promise<string> => ctr('tasks', 'list', '--quiet');
    expect(await running()).toContain(id);
    await kubectl('delete', 'pod', 'waits', '--wait=false');
    await expect.poll(async () => (await fetch(`${agent}/healthz/ready`)).text()).toContain('draining');
    await kubectl('delete', 'pod', 'waits', '--force', '--grace-period=0');
    await node().apply(pod('waits'));
    await ready('waits');
    // The kubelet waits for applications before it ends what is beside them, also of a Pod that the API server has not got.
    await expect.poll(running, { timeout: 60_000 }).not.toContain(id);
  });
}

const NAMESPACE = 'killed';
const FAIRLEAD = 'app.kubernetes.io/name=fairlead';

const NAMESPACES = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: NAMESPACE, labels: { 'istio-injection': 'enabled' } },
});

/** Of an application that ends when its grace period does. @param gated it is not started until its gate is removed. */
function pod(name: string, gated = false, graceSeconds = 10): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE, labels: { app: name } },
    spec: {
      ...(gated && { schedulingGates: [{ name: 'example.com/later' }] }),
      terminationGracePeriodSeconds: graceSeconds,
      containers: [
        {
          name: 'app',
          image: 'bookshop:dev',
          imagePullPolicy: 'Never',
          // Goes on when it is asked to end.
          command: ['node', '--eval', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 60_000)'],
        },
      ],
    },
  });
}
