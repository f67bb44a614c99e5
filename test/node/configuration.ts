import { join } from 'node:path';

/** Addresses inside the node, and its name; the same for every node. */
export const NODE = {
  name: 'node',
  address: '172.30.0.1',
  podRange: '10.244.0.0/24',
  /** The second family. */
  v6: { address: 'fd00:172:30::1', podRange: 'fd00:10:244::/64', serviceRange: 'fd00:10:96::/112' },
  /** Of the cluster's DNS, as a Service. */
  dns: '10.96.0.10',
  domain: 'cluster.local',
  apiPort: 6443,
  cgroup: 'fairlead-node',
  containerdSocket: '/run/containerd/containerd.sock',
} as const;

export const PAUSE_IMAGE = 'docker.io/library/pause:node';

export function containerdConfig(data: string, programs: { readonly cni: string; readonly runc: string }): string {
  return `
version = 2
root = "${join(data, 'containerd')}"
state = "/run/containerd"
[grpc]
  address = "${NODE.containerdSocket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Without the capability CAP_SYS_RESOURCE, runc could not lower the score, and would not start anything.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${programs.cni}"
    conf_dir = "${join(data, 'cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "${programs.runc}"
        SystemdCgroup = false
`;
}

/** Point-to-point links, no bridge: packets between Pods are routed, and so seen by the rules for Services. */
export const networkConfig = {
  cniVersion: '0.4.0',
  name: 'pods',
  plugins: [
    {
      type: 'ptp',
      ipMasq: false,
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: NODE.podRange }], [{ subnet: NODE.v6.podRange }]],
        routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }],
      },
    },
  ],
};

/** @param files names of files in the directory: certificate of the authority; the kubelet's own, and its key. */
export function kubeletConfig(
  data: string,
  files: { readonly ca: string; readonly certificate: string; readonly key: string; readonly resolvConf: string },
): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${NODE.containerdSocket}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${NODE.cgroup}`,
    failCgroupV1: false,
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    clusterDNS: [NODE.dns],
    clusterDomain: NODE.domain,
    resolvConf: files.resolvConf,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: files.ca },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: files.certificate,
    tlsPrivateKeyFile: files.key,
    podLogsDir: join(data, 'pod-logs'),
    volumePluginDir: join(data, 'volume-plugins'),
    // A machine with a full disk or little memory is not a reason to evict.
    evictionHard: { 'memory.available': '0%', 'nodefs.available': '0%', 'imagefs.available': '0%' },
    imageGCHighThresholdPercent: 100,
    localStorageCapacityIsolation: false,
    // Whoever waits for a Pod waits for these.
    syncFrequency: '10s',
    configMapAndSecretChangeDetectionStrategy: 'Watch',
  };
}

export function proxyConfig(kubeconfig: string): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clusterCIDR: `${NODE.podRange},${NODE.v6.podRange}`,
    hostnameOverride: NODE.name,
    clientConnection: { kubeconfig },
    // A network namespace cannot set these.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    nftables: { minSyncPeriod: '100ms', syncPeriod: '30s' },
  };
}
