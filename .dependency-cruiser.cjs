/** Imports point one way: the table of docs/architecture.md. */
const only = (name, from, to) => ({
  name,
  severity: 'error',
  from: { path: `^src/${from}`, pathNot: '\\.test\\.ts$' },
  to: { path: '^src/', pathNot: to.map((t) => `^src/${t}`) },
});
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: { pathNot: '^src/cache/' },
      to: { circular: true },
    },
    {
      // The graph, its collections and their cells know each other's types.
      name: 'no-cycles-in-the-kernel',
      severity: 'error',
      from: { path: '^src/cache/' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    only('base-imports-nothing', 'base/', ['base/']),
    only('cache-imports-nothing', 'cache/', ['cache/']),
    only('api-imports-nothing', 'api/', ['api/']),
    only('yaml', 'yaml/', ['yaml/', 'api/(json|schema-path)\\.ts$']),
    only('model-may-use-api', 'model/', ['model/', 'api/']),
    only('identity', 'identity/', ['identity/', 'api/quote\\.ts$']),
    // Who is who on the secure port: between the port, the authority and whoever reviews tokens.
    only('secure', 'secure/', [
      'secure/',
      'identity/',
      'ads/(types|transport/(authentication|headcount|secure-port|server-options))\\.ts$',
      'api/json\\.ts$',
      'base/',
    ]),
    // Keys of token issuers.
    only('jwks', 'jwks/', ['jwks/', 'model/', 'api/json\\.ts$', 'base/', 'reconcilers/security/key-set\\.ts$']),
    // Names of gateways between networks.
    only('gateway-hosts', 'gateway-hosts/', ['gateway-hosts/', 'model/', 'base/']),
    // Secrets for proxies.
    only('credentials', 'credentials/', ['credentials/', 'identity/pem\\.ts$', 'model/', 'api/json\\.ts$', 'base/']),
    only('reconcilers', 'reconcilers/', [
      'reconcilers/',
      'api/',
      'model/',
      'cache/',
      'yaml/document\\.ts$',
      'identity/spiffe\\.ts$',
    ]),
    only('settle', 'settle/', ['settle/', 'model/', 'api/']),
    // What an Envoy decides about a request.
    only('judge', 'judge/', ['judge/', 'settle/', 'model/', 'api/']),
    only('envoy', 'envoy/', ['envoy/', 'model/', 'api/', 'ads/store/resource\\.ts$']),
    {
      // A route is spelled alike whatever kind of object it is from.
      name: 'envoy-knows-no-kind-of-route',
      severity: 'error',
      from: { path: '^src/envoy/' },
      to: { path: '^src/model/(virtual-service|sidecar)' },
    },
    {
      // Which clusters and endpoints clients have, and what these speak, is settled before it is spelled.
      name: 'envoy-spells-clusters-and-endpoints',
      severity: 'error',
      from: { path: '^src/envoy/' },
      to: { path: '^src/model/(cluster-mesh|dns-endpoints|locality|network|policy-resolution|topology)\\.ts$' },
    },
    {
      // Routes are selected, and asked for, whatever kind of object they are from.
      name: 'selection-knows-no-kind-of-route',
      severity: 'error',
      from: { path: '^src/mesh/', pathNot: ['^src/mesh/virtual-services/', '\\.test\\.ts$'] },
      to: {
        path: [
          '^src/model/virtual-service',
          '^src/mesh/virtual-services/',
          '^src/settle/(virtual-service|delegate|cut-routes)',
        ],
      },
    },
    only('status', 'status/', ['status/', 'api/', 'model/']),
    only('ads', 'ads/', ['ads/', 'envoy/gen/', 'api/object\\.ts$', 'base/']),
    {
      // Bytes, then what is in force, then who holds what; connections on top.
      name: 'ads-transport-on-top',
      severity: 'error',
      from: { path: '^src/ads/(store|rollouts|wire|protocol)/' },
      to: { path: '^src/ads/transport/' },
    },
    {
      name: 'ads-wire-knows-no-protocol',
      severity: 'error',
      from: { path: '^src/ads/wire/' },
      to: { path: '^src/ads/protocol/' },
    },
    // Other clusters that objects come from.
    only('clusters', 'clusters/', ['clusters/', 'api/', 'yaml/document\\.ts$', 'base/']),
    // An etcd that is not ours: it knows nothing of clusters.
    only('etcd', 'etcd/', ['etcd/', 'base/']),
    // Cilium's ClusterMesh: formats, readers and the exporter.
    only('clustermesh', 'clustermesh/', [
      'clustermesh/',
      'etcd/',
      'api/',
      'model/',
      'yaml/document\\.ts$',
      'clusters/(connection|refusal)\\.ts$',
      'directory/watchers\\.ts$',
      'base/',
    ]),
    // Joins those, an API server and the graph.
    only('other-clusters', 'other-clusters/', [
      'other-clusters/',
      'api/',
      'cache/equal\\.ts$',
      'clustermesh/',
      'clusters/',
      'config/config\\.ts$',
      'credentials/',
      'debug/(cluster-report|peer-address)\\.ts$',
      'directory/folder\\.ts$',
      'engine/(committer|engine|wanted)\\.ts$',
      'sources/',
      'etcd/(access|error)\\.ts$',
      'kube/',
      'mesh\\.ts$',
      'mesh/resources/credentials\\.ts$',
      'model/cluster-mesh\\.ts$',
      'model/credential\\.ts$',
      'secure/token-issuer\\.ts$',
      'base/',
    ]),
    // What the API server asks before it stores an object.
    only('webhooks', 'webhooks/', [
      'webhooks/',
      'api/',
      'injection/',
      'model/proxy-config\\.ts$',
      'ops/connections\\.ts$',
      'base/',
    ]),
    // What a Pod becomes, and what its traffic passes.
    only('interception', 'interception/', ['interception/', 'model/cidr\\.ts$', 'api/quote\\.ts$']),
    only('injection', 'injection/', [
      'injection/',
      'interception/(flags|options|option-values)\\.ts$',
      'api/',
      'model/(label-selector|labels|own-value|proxy-config)\\.ts$',
      'reconcilers/ineffective-fields\\.ts$',
      'yaml/',
      'directory/lines\\.ts$',
    ]),
    only('kube', 'kube/', ['kube/', 'api/', 'cache/', 'yaml/document\\.ts$', 'base/']),
    {
      // How one talks to an API server, what is read from it, and what is written.
      name: 'kube-writing-on-top',
      severity: 'error',
      from: { path: '^src/kube/(client|reading)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/kube/writing/' },
    },
    {
      name: 'kube-client-knows-no-reading',
      severity: 'error',
      from: { path: '^src/kube/client/', pathNot: '\\.test\\.ts$' },
      to: { path: '^src/kube/reading/' },
    },
    // What all sources pass on their way to the graph.
    only('sources', 'sources/', ['sources/', 'api/', 'cache/equal\\.ts$', 'model/', 'reconcilers/mesh-config/']),
    only('directory', 'directory/', ['directory/', 'api/', 'cache/', 'yaml/']),
    only('mesh', 'mesh', [
      'mesh',
      'cache/',
      'reconcilers/',
      'settle/',
      'judge/',
      'envoy/',
      'status/',
      'model/',
      'api/',
      'ads/store/(publication|resource)\\.ts$',
      'ads/rollouts/rollout\\.ts$',
      'ads/types\\.ts$',
      'base/',
    ]),
    only('ops', 'ops/', ['ops/', 'api/', 'config/', 'base/', 'envoy/encode/served-types\\.ts$']),
    // Beside an Envoy: nothing of the control plane, whose memory each Pod would pay for.
    only('agent', 'agent/', [
      'agent/',
      'api/(histogram-buckets|json)\\.ts$',
      'config/settings\\.ts$',
      'identity/(pem|roots|spiffe)\\.ts$',
      'model/(file-path|named-host)\\.ts$',
      'ops/(connections|log-line)\\.ts$',
      'reconcilers/durations\\.ts$',
      'yaml/document\\.ts$',
      'base/',
    ]),
    only('cli', 'cli/', [
      'cli/',
      'agent/(agent|settings/settings)\\.ts$',
      'api/(json|object|quote)\\.ts$',
      'yaml/document\\.ts$',
      'model/proxy-config\\.ts$',
      'reconcilers/(proxy-node|proxy-config/proxy-config)\\.ts$',
      'ads/types\\.ts$',
      'config/',
      'debug/(cluster-report|status-report|peer-address)\\.ts$',
      'identity/rotation-report\\.ts$',
      'injection/',
      'interception/',
      'directory/split\\.ts$',
      'base/',
      'app\\.ts$',
      'envoy/encode/served-types\\.ts$',
    ]),
    {
      name: 'src-imports-nothing-from-test',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|tools)/' },
    },
    {
      name: 'one-composition-root',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/process\\.ts$' },
      to: { path: '^src/app\\.ts$' },
    },
    {
      name: 'pure-layers-do-no-io',
      severity: 'error',
      from: { path: '^src/(cache|identity|injection|judge|mesh|model|reconcilers|settle|envoy|status|yaml)/' },
      to: {
        dependencyTypes: ['core'],
        path: '^(fs|https?|http2|child_process|dgram|dns|os|process|timers|tls|worker_threads)(/|$)',
      },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '\\.test\\.ts$|/testing/' },
  },
};
