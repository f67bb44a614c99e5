import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { afterSuite } from '../../src/testing/on-end.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { Program } from '../features/program.ts';
import { type ApiServerClient, type RunningApiServer, startApiServer } from '../peers/api-server.ts';
import { borrowApiServer } from '../peers/borrowed-api-server.ts';
import { createAuthority } from '../peers/keys.ts';
import { pathOf } from '../peers/peer.ts';
import { plainEnvironment, poll, startProcess } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { blockOf } from './markdown.ts';
import { type Shell, createShell } from './shell.ts';

const PEERS = ['envoy', 'etcd', 'helm', 'istioctl', 'kube-apiserver', 'kube-controller-manager', 'kubectl'] as const;
const NAMESPACE = 'istio-system';
/** The name by which proxies know the control plane. */
const SERVER = 'fairlead.istio-system.svc';

/** A server whose Pods are objects alone; Fairlead runs in this process. What needs Pods that run is in test/node. */
withPeers(PEERS, 'commands of the guide in a cluster', () => {
  const onEnd = afterSuite();
  let own: ApiServerClient;
  let east: RunningApiServer;
  let shell: Shell;
  let program: Program;
  printLogOnFailure(() => program && { log: () => program.log.map((line) => JSON.stringify(line)).join('\n') });

  beforeAll(async () => {
    const borrowed = await borrowApiServer();
    onEnd(() => borrowed.stop());
    own = borrowed;
    east = await startApiServer({ controllers: true });
    onEnd(() => east.stop());
    const kubeconfig = { own: own.kubeconfig, east: east.kubeconfig };
    shell = await createShell({ programs: ['helm', 'istioctl', 'kubectl'], onEnd });
    await writeFile(join(shell.directory, 'kubeconfig'), JSON.stringify(await joined(kubeconfig)));
    for (const name of ['shop', 'edge', 'bookshop']) await own.kubectl('create', 'namespace', name);
    await own.kubectl('-n', 'shop', 'create', 'deployment', 'web', '--image=web');
  }, 120_000);

  /** Runs a block, or commands; returns what it prints. */
  async function type(commands: string): Promise<string> {
    const { code, stdout, stderr } = await shell.run(`export KUBECONFIG=$PWD/kubeconfig\n${commands}`);
    expect(code, `${commands}\n${stdout}${stderr}`).toBe(0);
    return stdout;
  }

  describe('install', () => {
    test('README.md#install', async () => {
      await type(blockOf('README.md#install'));
      expect(await own.kubectl('-n', 'shop', 'get', 'deployment', 'web', '-o', 'yaml')).toContain('restartedAt');
      await own.kubectl('wait', '--for=condition=Established', 'crd', '--all');
      const settings = { grpcAddress: 'off', secureGrpcAddress: '127.0.0.1:0', secureNames: `${SERVER},localhost` };
      program = await Program.start({ kubeconfig: own.kubeconfig, ...settings }, { onEnd });
      await program.logged('Signing certificates');
      await program.logged('Ready');
    });
  });

  describe('with Fairlead', () => {
    test.each(['routing.md#routing-by-example/2', 'security.md#mutual-tls', 'status.md#how-a-change-reaches-proxies'])(
      '%s',
      async (id) => {
        await type(blockOf(id));
      },
    );

    test('gateways.md#a-gateway-with-https, gateways.md#a-gateway-with-https/2', async () => {
      const { certificate, key } = await (await createAuthority()).server(['shop.example.com']);
      await writeFile(join(shell.directory, 'shop.crt'), certificate);
      await writeFile(join(shell.directory, 'shop.key'), key);
      await type(blockOf('gateways.md#a-gateway-with-https'));
      await type(blockOf('gateways.md#a-gateway-with-https/2'));
    });

    test('gateways.md#secrets, gateways.md#secrets/2', async () => {
      await type('kubectl -n edge create secret generic example-com');
      await type(blockOf('gateways.md#secrets'));
      await type(blockOf('gateways.md#secrets/2'));
      const may = 'kubectl auth can-i list secrets -n edge --as=system:serviceaccount:edge:router';
      expect(await type(may)).toBe('yes\n');
      expect(await type('fairlead identity')).toMatch(/^Stable since .*\n\nsigning /);
    });

    // At least a second after the first restart: kubectl refuses the second one before that.
    test('sidecars.md#injection, sidecars.md#injection/2', async () => {
      await type(blockOf('sidecars.md#injection'));
      await type(`cp examples/cluster/shop.yaml shop.yaml\n${blockOf('sidecars.md#injection/2')}`);
      const template = await own.kubectl('-n', 'bookshop', 'get', 'deployment', 'reviews-v1', '-o', 'yaml');
      expect(template).toContain('name: istio-proxy');
    });

    test('docs/security.md#who-may-write-what-and-what-it-reaches:yaml is taken', async () => {
      await own.apply(blockOf('docs/security.md#who-may-write-what-and-what-it-reaches:yaml'));
      await own.kubectl('delete', 'validatingadmissionpolicy', 'virtualservices-stay-at-home');
    });

    test('operations.md#endpoints-that-are-held', async () => {
      await type('kubectl -n shop create service clusterip reviews --tcp=80');
      expect(await type(blockOf('operations.md#endpoints-that-are-held'))).toContain('is released');
    });

    test('clusters.md#several-networks', async () => {
      await type(blockOf('clusters.md#several-networks'));
      expect(await own.kubectl('-n', NAMESPACE, 'get', 'service', 'istio-eastwestgateway', '-o', 'yaml')).toContain(
        'topology.istio.io/network: east',
      );
    });

    test('clusters.md#cilium-clustermesh', async () => {
      const [grpc, secure, health, monitoring] = await freePorts(4);
      const command = blockOf('clusters.md#cilium-clustermesh').replace('/var/lib/cilium/clustermesh', shell.directory);
      const addresses = {
        FAIRLEAD_GRPC_ADDRESS: `127.0.0.1:${grpc}`,
        FAIRLEAD_SECURE_GRPC_ADDRESS: `127.0.0.1:${secure}`,
        FAIRLEAD_HEALTH_ADDRESS: `127.0.0.1:${health}`,
        FAIRLEAD_MONITORING_ADDRESS: `127.0.0.1:${monitoring}`,
      };
      const [, ...words] = command.trim().split(' ');
      const started = startProcess(process.execPath, [join(shell.directory, 'src/main.ts'), ...words], {
        env: { ...plainEnvironment(), ...addresses, KUBECONFIG: own.kubeconfig },
      });
      onEnd(() => started.stop());
      const ready = async () => (await fetch(`http://127.0.0.1:${health}/ready`).catch(() => undefined))?.ok || undefined;
      await poll('it is ready', ready, { process: started });
      await started.stop();
    });

    test('sidecars.md#on-a-virtual-machine, sidecars.md#on-a-virtual-machine/2', async () => {
      await poll('the roots', async () =>
        (await type('kubectl -n shop get configmap istio-ca-root-cert --ignore-not-found')) === '' ? undefined : true,
      );
      await type(blockOf('sidecars.md#on-a-virtual-machine'));
      const [admin, status, ready = 0, stats] = await freePorts(4);
      const command = blockOf('sidecars.md#on-a-virtual-machine/2')
        .replace('/var/lib/fairlead', join(shell.directory, 'machine'))
        .replace('fairlead.example.com:15012', `127.0.0.1:${program.serving.ports.secure}`)
        .replace('"/usr/local/bin/envoy"', `"${pathOf('envoy')}", "proxyAdminPort": ${admin}, "statusPort": ${status}`);
      // Other agents may run on this machine.
      const ports = `ENVOY_STATUS_PORT=${ready} ENVOY_PROMETHEUS_PORT=${stats} INSTANCE_IP=127.0.0.1`;
      const agent = startProcess('bash', ['-c', `PATH=$PWD/.bin:$PATH; ${ports} ${command}`], {
        ...{ cwd: shell.directory, env: plainEnvironment() },
      });
      onEnd(() => agent.stop());
      const answer = () => fetch(`http://127.0.0.1:${ready}/healthz/ready`).catch(() => undefined);
      await poll('the agent is ready', async () => ((await answer())?.ok ? true : undefined), { process: agent });
      expect(await readFile(join(shell.directory, 'machine/etc/certs/cert-chain.pem'), 'utf8')).toContain('CERTIFICATE');
      await agent.stop();
    });
  });

  describe('another cluster', () => {
    test('clusters.md#several-clusters joins it', async () => {
      await east.kubectl('create', 'namespace', NAMESPACE);
      await type(blockOf('clusters.md#several-clusters'));
      const address = `--address 127.0.0.1:${program.serving.ports.health}`;
      await poll('it is read', async () =>
        /^east +istio-system\/istio-remote-secret-east +SYNCED/m.test(await type(`fairlead clusters ${address}`))
          ? true
          : undefined,
      );
    });

    test('clusters.md#proxies-of-other-clusters, clusters.md#proxies-of-other-clusters/2', async () => {
      await type(blockOf('clusters.md#proxies-of-other-clusters'));
      await type(blockOf('clusters.md#proxies-of-other-clusters/2'));
      const names = await own.kubectl('-n', NAMESPACE, 'get', 'secrets', '-l', 'istio/multiCluster=true', '-o', 'name');
      expect(names).toBe('secret/istio-remote-secret-east\n');
    });
  });

  describe('before the end', () => {
    test('operations.md#another-root-without-the-old-key', async () => {
      await writeFile(join(shell.directory, 'values.yaml'), 'global: {hub: registry.example.com}\n');
      await type(blockOf('operations.md#another-root-without-the-old-key'));
    });

    test('sidecars.md#let-pods-start-without-fairlead', async () => {
      await type(blockOf('sidecars.md#let-pods-start-without-fairlead'));
      expect(await own.kubectl('get', 'namespace', 'shop', '-o', 'yaml')).not.toContain('istio-injection');
    });
  });
});

withPeers(['etcd', 'helm', 'kube-apiserver', 'kubectl'], 'commands of the guide beside istiod', () => {
  const onEnd = afterSuite();

  test('from-istiod-and-back.md#look-before-you-move to from-istiod-and-back.md#side-by-side/2', async () => {
    const api = await borrowApiServer();
    onEnd(() => api.stop());
    const shell = await createShell({ programs: ['helm', 'kubectl'], env: { KUBECONFIG: api.kubeconfig }, onEnd });
    const type = async (commands: string): Promise<string> => {
      const { code, stdout, stderr } = await shell.run(commands);
      expect(code, `${commands}\n${stdout}${stderr}`).toBe(0);
      return stdout;
    };
    // What a cluster with istiod has: definitions of Istio's kinds, its authority, its mesh config, and a VirtualService.
    await type(`kubectl create namespace bookshop; kubectl create namespace ${NAMESPACE}
      helm template x charts/fairlead --include-crds --set istioCrds=true,global.hub=x > all.yaml
      node -e '
        const documents = require("fs").readFileSync("all.yaml", "utf8").split(/^---$/m);
        const isIstios = (text) => /^kind: CustomResourceDefinition$/m.test(text) && /^ {2}name: .*istio[.]io$/m.test(text);
        require("fs").writeFileSync("crds.yaml", documents.filter(isIstios).join("---"));
      '
      kubectl apply --server-side -f crds.yaml
      kubectl wait --for=condition=Established crd --all
      kubectl -n ${NAMESPACE} create secret generic istio-ca-secret --from-literal=ca-key.pem=x
      kubectl -n ${NAMESPACE} create configmap istio --from-literal=mesh=
      kubectl apply -f examples/guide/split.yaml`);
    await type(blockOf('from-istiod-and-back.md#look-before-you-move'));
    await type(blockOf('from-istiod-and-back.md#look-before-you-move/2'));
    await type(blockOf('from-istiod-and-back.md#side-by-side'));
    await type(blockOf('from-istiod-and-back.md#side-by-side/2'));
    expect(await api.kubectl('-n', NAMESPACE, 'get', 'secret', 'istio-ca-secret', '-o', 'jsonpath={.data}')).toBe(
      '{"ca-key.pem":"eA=="}',
    );
    expect(await api.kubectl('-n', NAMESPACE, 'get', 'configmap', 'istio', '-o', 'jsonpath={.data.mesh}')).toBe('');
    expect(await api.kubectl('-n', NAMESPACE, 'get', 'secret', 'fairlead-ca', '-o', 'name')).toBe('secret/fairlead-ca\n');
  });
});

/** One kubeconfig of several; the first is the current one. */
async function joined(files: Readonly<Record<string, string>>): Promise<object> {
  const all = await Promise.all(
    Object.entries(files).map(async ([name, path]) => {
      const { clusters, users } = parse(await readFile(path, 'utf8')) as Record<'clusters' | 'users', [object]>;
      return { name, cluster: { ...clusters[0], name }, user: { ...users[0], name } };
    }),
  );
  return {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': all[0]!.name },
    clusters: all.map(({ cluster }) => cluster),
    users: all.map(({ user }) => user),
    contexts: all.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
  };
}
