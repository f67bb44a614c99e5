import { expect, test } from 'vitest';
import { withPeers } from '../peers/with-peers.ts';
import { renderChart } from './chart.ts';

const autoscaled = (minReplicas: number, maxReplicas: number): object => ({
  autoscaling: { enabled: true, minReplicas, maxReplicas },
});

withPeers(['helm'], 'the chart', () => {
  test.each([
    ['a value that does not exist', { replicaCount: 2 }, 'replicaCount'],
    ['text for a number', { replicas: 'two' }, '/replicas'],
    ['a number of replicas below zero', { replicas: -1 }, '/replicas'],
    ['images that are nowhere', { global: {} }, 'image.repository is not set, nor is global.hub'],
    ['a digest that is none', { image: { digest: 'sha256:1' } }, '/image/digest'],
    ['fewer replicas at most than at least', autoscaled(3, 2), 'minReplicas is more than autoscaling.maxReplicas'],
    ['a label that no object can have', { labels: { team: 'x y z' } }, '/labels/team'],
    ['a label of Pods that no object can have', { podLabels: { 'x y z': 'a' } }, "'x y z' does not match"],
    ['a label of nodes that no node can have', { nodeSelector: { a: 'x y z' } }, '/nodeSelector/a'],
    ['a family of addresses that does not exist', { ipFamilies: ['IPv5'] }, '/ipFamilies/0'],
    ['a duration without a unit', { shutdownDuration: '10' }, '/shutdownDuration'],
    [
      'a constraint without a topology',
      { topologySpreadConstraints: [{ maxSkew: 1 }] },
      '/topologySpreadConstraints/0',
    ],
    ['an authority that is no certificate', { jwksResolverExtraRootCA: 'x' }, '/jwksResolverExtraRootCA'],
    ['a hook that does not exist', { proxy: { lifecycle: { onStart: {} } } }, '/proxy/lifecycle'],
    ['a policy that does not exist', { image: { pullPolicy: 'Sometimes' } }, '/image/pullPolicy'],
    ['a level that does not exist', { log: { level: 'trace' } }, '/log/level'],
    ['a batch without units', { batch: '10/100' }, '/batch'],
    ['a lifetime without a unit', { workloadCertificateLifetime: '72' }, '/workloadCertificateLifetime'],
    ['mesh config as text', { meshConfig: 'accessLogFile: /dev/stdout' }, '/meshConfig'],
    ['no name of a namespace', { rootNamespace: 'Istio_System' }, '/rootNamespace'],
    ['no name of a Service', { service: { alias: '8istiod' } }, '/service/alias'],
    ['a revision that no Lease can be named for', { revision: 'Canary' }, '/revision'],
    ['a namespace that can not be', { credentials: { namespaces: ['Edge'] } }, '/credentials/namespaces/0'],
    ['an address with a port', { plaintext: { host: '127.0.0.1:15010' } }, '/plaintext/host'],
    ['a peer that is none', { networkPolicy: { proxies: [{ namespace: 'shop' }] } }, '/networkPolicy/proxies/0'],
    ['a failure policy that does not exist', { validation: { failurePolicy: 'Refuse' } }, '/validation/failurePolicy'],
    ['a namespace that can not be excluded', { injection: { excludedNamespaces: ['A'] } }, '/injection/excluded'],
    ['a budget that is not a number', { podDisruptionBudget: { maxUnavailable: 'one' } }, '/podDisruptionBudget'],
    ['a volume without a name', { extraVolumes: [{ emptyDir: {} }] }, '/extraVolumes/0'],
    ['no amount of memory', { resources: { limits: { memory: 'much' } } }, '/resources/limits/memory'],
    ['a ClusterMesh without a name', { clusterMesh: { enabled: true } }, 'clusterMesh.name is not set'],
    ['a cluster id out of range', { clusterMesh: { id: 512 } }, '/clusterMesh/id'],
    ['an environment that is not a list', { extraEnv: { TZ: 'UTC' } }, '/extraEnv'],
  ])('refuses %s and names it', async (_, values, place) => {
    await expect(renderChart(values)).rejects.toThrow(place);
  });
});
