import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApiServer } from './api-server.ts';
import type { RunningApiServer } from './api-server.ts';
import { startEnvoy, validateBootstrap } from './envoy.ts';
import { startFakeKubelet } from './fake-kubelet.ts';
import { CHART } from '../chart/chart.ts';
import { pathOf } from './peer.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll, run, startProcess } from './process.ts';
import { printLogOnFailure, withPeers } from './with-peers.ts';

describe('a started program', () => {
  test('is killed with what it started, by stop and by a signal', async () => {
    const stopping = new AbortController();
    const script = ['-c', 'sleep 1000 & echo $!; wait'];
    for (const stop of [undefined, stopping]) {
      const shell = startProcess('/bin/sh', script, { signal: stopping.signal });
      const child = await poll('its child', () => Promise.resolve(Number(shell.log()) || undefined));
      if (stop) stop.abort();
      else await shell.stop();
      expect(await shell.exited).toBe('SIGKILL');
      await poll('the end of its child', () => Promise.resolve(isAlive(child) ? undefined : true));
    }
  });

  test('that does not exist ends with its reason in the log', async () => {
    const nothing = startProcess('/nonexistent/program', []);
    expect(await nothing.exited).not.toBe(0);
    expect(nothing.log()).toContain('/nonexistent/program');
  });
});

describe('free ports', () => {
  const range = { first: 19_000, count: 12 };
  const source = JSON.stringify(join(import.meta.dirname, '../../src/testing/free-ports.ts'));
  const script = (count: number): string =>
    `const { freePorts } = await import(${source});
     console.log(JSON.stringify(await freePorts(${count}, ${JSON.stringify(range)})));
     setInterval(() => {}, 1000);`;

  test('belong to one process until it ends', async () => {
    const taken = createServer().listen(range.first, '127.0.0.1');
    const start = (count: number) => startProcess(process.execPath, ['--input-type=module', '-e', script(count)]);
    const processes = [start(4), start(4)];
    try {
      const ports = await Promise.all(
        processes.map((each) => poll('its ports', () => Promise.resolve(portsIn(each.log())))),
      );
      const mine = await freePorts(3, range);
      const all = Array.from({ length: range.count }, (_, i) => range.first + i);
      expect([range.first, ...ports.flat(), ...mine].toSorted()).toEqual(all);
      await expect(freePorts(1, range)).rejects.toThrow('only 0 of 1 ports are free from 19000 on');
      await processes[0]!.stop();
      expect((await freePorts(4, range)).toSorted()).toEqual(ports[0]!.toSorted());
    } finally {
      await Promise.all(processes.map((each) => each.stop()));
      taken.close();
    }
  });

  const portsIn = (log: string): number[] | undefined =>
    log.endsWith('\n') ? (JSON.parse(log) as number[]) : undefined;
});

withPeers(['envoy'], 'Envoy', () => {
  const cluster = { name: 'x', type: 'STATIC', connectTimeout: '1s' };

  test('accepts static configuration that is right', async () => {
    expect(await validateBootstrap({ staticResources: { clusters: [cluster] } })).toEqual({ ok: true });
  });

  test('says what is wrong with static configuration', async () => {
    const wrong = { ...cluster, type: 'EDS' };
    expect(await validateBootstrap({ staticResources: { clusters: [wrong] } })).toEqual({
      ok: false,
      message: expect.stringContaining('cannot create an EDS cluster without an EDS config') as string,
    });
  });

  test.each([true, false])('starts and waits for its control plane (delta: %s)', async (delta) => {
    const [port = 0] = await freePorts(1);
    const envoy = await startEnvoy({ adsPort: port, delta, node: { id: 'test' } });
    try {
      expect(await envoy.stats('control_plane.connected_state')).toEqual({ 'control_plane.connected_state': 0 });
      await expect(envoy.admin('/ready')).rejects.toThrow('INITIALIZING');
      expect(await envoy.configDump()).toEqual({ clusters: [], listeners: [], routes: [], endpoints: [] });
    } finally {
      await envoy.stop();
    }
    expect(isAlive(envoy.pid)).toBe(false);
  });

  test('that does not start says why', async () => {
    const start = startEnvoy({ adsPort: 1, delta: true, node: { id: 'x' }, extraBootstrap: { nope: 1 } });
    await expect(start).rejects.toThrow('nope');
  });
});

withPeers(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'], 'the API server', () => {
  let api: RunningApiServer | undefined;
  const stopping = new AbortController();
  const started = (): RunningApiServer => api ?? expect.fail('it did not start');
  printLogOnFailure(() => api);

  beforeAll(async () => {
    api = await startApiServer({ controllers: true });
  });
  afterAll(async () => {
    stopping.abort();
    await api?.stop();
  });

  test('answers kubectl', async () => {
    const names = await started().kubectl('get', 'ns', '-o', 'name');
    expect(names.split('\n')).toContain('namespace/default');
    await expect(started().kubectl('get', 'nope')).rejects.toThrow("doesn't have a resource type");
  });

  test('refuses a ServiceAccount what it was not granted', async () => {
    const token = (await started().kubectl('create', 'token', 'default')).trim();
    const kubeconfig = await started().kubeconfigWithToken(token);
    const { code, stderr } = await run(pathOf('kubectl'), ['--kubeconfig', kubeconfig, 'get', 'pods']);
    expect(code).toBe(1);
    expect(stderr).toContain('User "system:serviceaccount:default:default" cannot list resource "pods"');
  });

  test('runs a Deployment on the fake node, until and after it is started again', async () => {
    let pods = 0;
    const { stopped } = await startFakeKubelet(started(), {
      podIP: () => `10.244.0.${++pods}`,
      signal: stopping.signal,
    });
    await started().apply(WEB);
    await started().kubectl('wait', '--for=condition=Available', 'deployment/web', '--timeout=60s');
    expect(await addressesOf(started(), 2)).toEqual(['10.244.0.1', '10.244.0.2']);

    await started().restart();
    await started().kubectl('scale', 'deployment/web', '--replicas=1');
    expect(await addressesOf(started(), 1)).toHaveLength(1);
    stopping.abort();
    await stopped;
  });
});

withPeers(['helm'], 'helm', () => {
  test('tells its version', async () => {
    expect((await run(pathOf('helm'), ['version', '--short'])).stdout).toMatch(/^v3\./);
  });

  test('renders for a Kubernetes that the charts allow', async () => {
    expect(
      await run(pathOf('helm'), ['template', 'fairlead', CHART, '--set', 'global.hub=registry.example.com']),
    ).toMatchObject({ code: 0, stderr: '' });
  });
});

const labels = { app: 'web' };
const WEB = [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'web', image: 'web', ports: [{ name: 'http', containerPort: 8080 }] }],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: labels, ports: [{ port: 80, targetPort: 'http' }] },
  },
]
  .map((object) => JSON.stringify(object))
  .join('\n---\n');

async function addressesOf(api: RunningApiServer, count: number): Promise<string[]> {
  return poll('the addresses of web', async () => {
    const list = await api.call('GET', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices');
    const slices = list['items'] as { endpoints?: { addresses: string[] }[] }[];
    const addresses = slices.flatMap((slice) => (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses));
    return addresses.length === count ? addresses.sort() : undefined;
  });
}

/** A process that has ended may wait for its parent for a while. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
