import { NODE } from './configuration.ts';

export const DNS_IMAGE = 'docker.io/library/coredns:node';

const NAME = 'coredns';
const NAMESPACE = 'kube-system';

const COREFILE = `.:53 {
  errors
  health
  ready
  kubernetes ${NODE.domain} in-addr.arpa ip6.arpa {
    pods insecure
  }
  cache 5
}
`;

/** CoreDNS, as clusters have it: names of Services and Pods, and nothing outside. */
export const dnsObjects: readonly object[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace: NAMESPACE } },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: NAME },
    rules: [
      { apiGroups: [''], resources: ['services', 'namespaces', 'pods'], verbs: ['list', 'watch'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: NAME },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME },
    subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: NAMESPACE }],
  },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: NAME, namespace: NAMESPACE },
    data: { Corefile: COREFILE },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kube-dns', namespace: NAMESPACE, labels: { 'k8s-app': 'kube-dns' } },
    spec: {
      clusterIP: NODE.dns,
      selector: { 'k8s-app': 'kube-dns' },
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      ],
    },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME, namespace: NAMESPACE },
    spec: {
      replicas: 1,
      selector: { matchLabels: { 'k8s-app': 'kube-dns' } },
      template: {
        metadata: { labels: { 'k8s-app': 'kube-dns' } },
        spec: {
          serviceAccountName: NAME,
          dnsPolicy: 'Default',
          containers: [
            {
              name: NAME,
              image: DNS_IMAGE,
              imagePullPolicy: 'Never',
              args: ['-conf', '/etc/coredns/Corefile'],
              ports: [
                { containerPort: 53, protocol: 'UDP' },
                { containerPort: 53, protocol: 'TCP' },
              ],
              readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
              volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
            },
          ],
          volumes: [{ name: 'config', configMap: { name: NAME } }],
        },
      },
    },
  },
];
