import { afterAll, beforeAll, expect, test } from 'vitest';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { rule, reviews, split } from '../features/shop.ts';
import { Directory } from '../features/sources.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { startPortForwarding } from '../peers/fake-port-forward.ts';
import { withPeers } from '../peers/with-peers.ts';

withPeers(['etcd', 'kube-apiserver', 'kubectl'], 'status in a cluster', () => {
  let server: BorrowedApiServer;
  let kubelet: Awaited<ReturnType<typeof startPortForwarding>>;
  /** Of the programs that stand for Pods, by `namespace/pod`. */
  const ports = new Map<string, number>();

  beforeAll(async () => {
    kubelet = await startPortForwarding((pod, port) => (port === 15014 ? ports.get(pod) : undefined));
    server = await borrowApiServer();
    await server.call('POST', '/api/v1/nodes', { metadata: { name: 'node' } });
    await server.call('PATCH', '/api/v1/nodes/node/status', {
      status: {
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
      },
    });
    for (const name of ['istio-system', 'mesh'])
      await server.call('POST', '/api/v1/namespaces', { metadata: { name } });
    for (const name of ['default', 'viewer', 'stranger'])
      await server.call('POST', '/api/v1/namespaces/istio-system/serviceaccounts', { metadata: { name } });
  });
  afterAll(async () => {
    await server?.stop();
    kubelet?.stop();
  });

  async function pod(name: string, phase: string, labels = { 'app.kubernetes.io/name': 'fairlead' }): Promise<void> {
    const path = '/api/v1/namespaces/istio-system/pods';
    await server.call('POST', path, {
      metadata: { name, labels },
      spec: { nodeName: 'node', automountServiceAccountToken: false, containers: [{ name: 'a', image: 'a' }] },
    });
    await server.call('PATCH', `${path}/${name}/status`, { status: { phase } });
  }

  const kubeconfigOf = async (account: string): Promise<string> =>
    server.kubeconfigWithToken((await server.kubectl('create', 'token', account, '-n', 'istio-system')).trim());

  async function status(kubeconfig: string, ...args: readonly string[]) {
    let [out, err] = ['', ''];
    const code = await runCli(['status', '--kubeconfig', kubeconfig, ...args], {
      program: () => Promise.resolve(createProgram()),
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      env: {},
      signal: new AbortController().signal,
    });
    return { code, out, err };
  }

  test('all replicas are asked through the API server, and what does not answer is named', async () => {
    const directory = await Directory.create();
    await directory.apply(...reviews, rule, split(80, 20));
    for (const name of ['one', 'two']) {
      const program = await directory.start();
      await program.connect(true, { id: `sidecar~10.0.0.1~${name}.shop~shop.svc.cluster.local` });
      // An acknowledgement counts a moment later.
      await expect.poll(() => [...program.serving.engine.progress.unfinished()]).toEqual([]);
      ports.set(`istio-system/fairlead-${name}`, program.serving.ports.monitoring);
      await pod(`fairlead-${name}`, 'Running');
    }
    await pod('fairlead-old', 'Succeeded');
    await pod('other', 'Running', { 'app.kubernetes.io/name': 'other' });

    const { code, out, err } = await status(server.kubeconfig);
    expect([code, err]).toEqual([0, '']);
    expect(
      out.split('\n').map((line) => line.split(/ +/)[0]),
      out,
    ).toEqual(['PROXY', 'one.shop', 'two.shop', '', 'All', '']);
    const one = await status(server.kubeconfig, 'two.shop', '-o', 'json');
    expect(JSON.parse(one.out)).toMatchObject({
      replicas: [
        { address: 'istio-system/fairlead-one', proxies: [] },
        { address: 'istio-system/fairlead-two', proxies: [{ proxy: 'two.shop' }] },
      ],
    });

    await pod('fairlead-three', 'Running');
    const three = await status(server.kubeconfig);
    expect(three).toMatchObject({ code: 1, out: expect.stringContaining('two.shop') as string });
    expect(three.err).toBe('error: istio-system/fairlead-three: nothing listens on 15014\n');
  });

  test('who may list Pods but not forward ports is told so, and so is who looks in the wrong place', async () => {
    await server.kubectl('create', 'clusterrole', 'viewer', '--verb=list', '--resource=pods');
    const account = '--serviceaccount=istio-system:viewer';
    await server.kubectl('create', 'clusterrolebinding', 'viewer', '--clusterrole=viewer', account);
    await pod('fairlead-four', 'Running');
    const { code, err } = await status(await kubeconfigOf('viewer'));
    expect(code).toBe(1);
    expect(err).toMatch(/^error: istio-system\/fairlead-four: .*cannot .* "pods\/portforward"/m);
    expect(await status(server.kubeconfig, '--root-namespace', 'mesh')).toEqual({
      ...{ code: 1, out: '' },
      err: 'error: no Pod with label app.kubernetes.io/name=fairlead runs in namespace mesh; set --root-namespace, or --address for a server outside a cluster\n',
    });
    const stranger = await status(await kubeconfigOf('stranger'));
    expect(stranger.err).toMatch(/^error: Pods in namespace istio-system cannot be listed: .*forbidden/);
  });
});
