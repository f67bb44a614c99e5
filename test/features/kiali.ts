/**
 * Everything that Kiali asks of a control plane: Kiali 2.31 (github.com/kiali/kiali at d733a096e, 2026-08-20), by the
 * files in which it does so. All else it has from Prometheus, from the API server, and from the Envoys themselves.
 */
export const kiali = {
  /** Sent as `http://localhost:…`, through a forwarded port of a Pod; the version also to the Service. */
  requests: {
    /** istio/version.go */
    version: { port: 'monitoring', path: '/version' },
    /** istio/discovery.go; any status below 400 means healthy. */
    ready: { port: 'health', path: '/ready' },
    /** business/controlplane_monitor.go; every 20 s, to each running Pod. */
    proxies: { port: 'monitoring', path: '/debug/syncz' },
  },

  /** What it decodes of each element of `/debug/syncz`, all of it as text: kubernetes/types.go, `SyncStatus`. */
  proxyFields: [
    ...['cluster_id', 'proxy', 'proxy_version', 'istio_version', 'cluster_sent', 'cluster_acked', 'listener_sent'],
    ...['listener_acked', 'route_sent', 'route_acked', 'endpoint_sent', 'endpoint_acked'],
  ],

  /** What it asks Prometheus about the Pods of a control plane: business/metrics.go, config/dashboards/dashboards.go. */
  metrics: [
    ...['pilot_info', 'pilot_proxy_convergence_time_count', 'pilot_proxy_convergence_time_sum', 'pilot_xds_pushes'],
    ...['pilot_xds', 'pilot_services', 'process_cpu_seconds_total', 'process_resident_memory_bytes'],
  ],

  /** How it finds what it asks, and the mesh config. */
  objects: {
    /** istio/discovery.go: Deployments in all namespaces. */
    labels: { app: 'istiod' },
    /** istio/kubernetes.go, istio/version.go: Pods and Services have the Deployment's value, even if it is empty. */
    revisionLabel: 'istio.io/rev',
    /** istio/discovery.go: in the first container; the same as in the `cluster_id` of proxies. */
    clusterVariable: 'CLUSTER_ID',
    /** istio/version.go: name of the port of the Service. */
    monitoringPort: 'http-monitoring',
    /** istio/constants.go: where Pods are asked, unless an argument `--monitoringAddr` says otherwise. */
    podPorts: { monitoring: 15014, health: 8080 },
    /** istio/discovery.go: with `-REVISION` if the revision is not `default`. */
    meshConfig: { name: 'istio', key: 'mesh' },
    /** istio/discovery.go: in the namespace of the Deployment. */
    roots: { name: 'istio-ca-root-cert', key: 'root-cert.pem' },
    /**
     * business/istio_config.go: it lists them all, and shows no objects where one of them does not exist; only of
     * Gateway and TrafficExtension it looks whether they do.
     */
    kinds: {
      'networking.istio.io/v1': [
        ...[
          'DestinationRule',
          'Gateway',
          'ServiceEntry',
          'Sidecar',
          'VirtualService',
          'WorkloadEntry',
          'WorkloadGroup',
        ],
      ],
      'networking.istio.io/v1alpha3': ['EnvoyFilter'],
      'security.istio.io/v1': ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'],
      'telemetry.istio.io/v1': ['Telemetry'],
      'extensions.istio.io/v1alpha1': ['WasmPlugin'],
    },
  },
} as const;
