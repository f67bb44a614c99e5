import {
  type DoublingCase,
  many,
  record,
  make,
  spec,
  port,
  service,
  host,
  address,
  toA,
  names,
  entry,
  rule,
  grown,
  vs,
} from './doubling-objects.ts';

export const casesOfOthers: readonly DoublingCase[] = [
  grown(
    'Gateway: servers of one port',
    (n) => [
      spec('Gateway', {
        selector: { app: 'a' },
        servers: many(n, (i) => ({
          name: `s${i}`,
          port: { number: 443, name: `https-${i}`, protocol: 'HTTPS' },
          hosts: [host(i)],
          tls: { mode: 'SIMPLE', credentialName: `c${i}` },
        })),
      }),
    ],
    (n) => [vs({ hosts: many(n, host), gateways: ['it'], http: [toA] })],
  ),
  grown(
    'Gateway: servers of many ports',
    (n) => [
      spec('Gateway', {
        selector: { app: 'a' },
        servers: many(n, (i) => ({ name: `s${i}`, port: port(i), hosts: [host(i)] })),
      }),
    ],
    (n) => [vs({ hosts: many(n, host), gateways: ['it'], http: [toA] })],
  ),
  grown(
    'Gateway: hosts of a server',
    (n) => [
      spec('Gateway', {
        selector: { app: 'a' },
        servers: [{ port: port(0), hosts: many(n, (i) => (i % 2 ? host(i) : `n${i}/*.${host(i)}`)) }],
      }),
    ],
    (n) => [vs({ hosts: many(n, host), gateways: ['it'], http: [toA] })],
  ),
  grown(
    'Gateway: servers that forward by name',
    (n) => [
      spec('Gateway', {
        selector: { app: 'a' },
        servers: many(n, (i) => ({
          port: { number: 443, name: `tls-${i}`, protocol: 'TLS' },
          hosts: [host(i)],
          tls: { mode: 'PASSTHROUGH' },
        })),
      }),
    ],
    (n) => [
      vs({
        hosts: many(n, host),
        gateways: ['it'],
        tls: many(n, (i) => ({ match: [{ sniHosts: [host(i)] }], ...toA })),
      }),
    ],
  ),
  grown(
    'Gateway: a server of many hosts with TLS',
    (n) => [
      spec('Gateway', {
        selector: { app: 'a' },
        servers: [
          {
            port: { number: 443, name: 'https', protocol: 'HTTPS' },
            hosts: many(n, host),
            tls: {
              mode: 'MUTUAL',
              credentialName: 'c',
              subjectAltNames: many(n, host),
              cipherSuites: names(n, 'ECDHE-'),
              verifyCertificateSpki: names(n, 's'),
            },
          },
        ],
      }),
    ],
    (n) => [vs({ hosts: many(n, host), gateways: ['it'], http: [toA] })],
  ),
  grown('Gateway: selector', (n) => [
    spec('Gateway', { selector: record(n, (i) => [`l${i}`, 'a']), servers: [{ port: port(0), hosts: ['*'] }] }),
  ]),
  grown(
    'Sidecar: egress listeners',
    (n) => [spec('Sidecar', { egress: many(n, (i) => ({ port: port(i), hosts: [`./${host(i)}`] })) })],
    () => [entry({ hosts: many(5, host) })],
  ),
  grown(
    'Sidecar: hosts of a listener',
    (n) => [spec('Sidecar', { egress: [{ hosts: many(n, (i) => (i % 2 ? `./${host(i)}` : `n${i}/*`)) }] })],
    (n) => [entry({ hosts: many(n, host) }), vs({ hosts: many(n, host), http: [toA] })],
  ),
  grown(
    'Sidecar: hosts and delegated routes',
    (n) => [spec('Sidecar', { egress: [{ hosts: many(n, (i) => `./*.${host(i)}`) }] })],
    (n) => [entry({ hosts: many(n, (i) => `a.${host(i)}`) })],
  ),
  grown(
    'Sidecar: ingress listeners',
    (n) => [
      spec('Sidecar', {
        workloadSelector: { labels: { app: 'a' } },
        ingress: many(n, (i) => ({ port: port(i), defaultEndpoint: `127.0.0.1:${2000 + i}` })),
        egress: [{ hosts: ['./*'] }],
      }),
    ],
    (n) => [service(n)],
  ),
  grown('Sidecar: selector', (n) => [
    spec('Sidecar', { workloadSelector: { labels: record(n, (i) => [`l${i}`, 'a']) }, egress: [{ hosts: ['./*'] }] }),
  ]),
  grown('AuthorizationPolicy: rules', (n) => [
    spec('AuthorizationPolicy', {
      rules: many(n, (i) => ({
        from: [{ source: { principals: [`p${i}`] } }],
        to: [{ operation: { paths: [`/${i}`] } }],
        when: [{ key: `request.headers[x-${i}]`, values: ['a'] }],
      })),
    }),
  ]),
  grown('AuthorizationPolicy: from, to, when', (n) => [
    spec('AuthorizationPolicy', {
      rules: [
        {
          from: many(n, (i) => ({ source: { principals: [`p${i}`] } })),
          to: many(n, (i) => ({ operation: { paths: [`/${i}`] } })),
          // Each `from` is spelled with all of `when`: src/mesh/resources limits what a set of policies comes to.
          when: many(2, (i) => ({ key: `request.headers[x-${i}]`, values: ['a'] })),
        },
      ],
    }),
  ]),
  grown('AuthorizationPolicy: lists of a source and an operation', (n) => [
    spec('AuthorizationPolicy', {
      selector: { matchLabels: { app: 'a' } },
      rules: [
        {
          from: [
            {
              source: {
                principals: names(n, 'p'),
                notPrincipals: names(n, 'q'),
                requestPrincipals: names(n, 'i/'),
                notRequestPrincipals: names(n, 'j/'),
                namespaces: names(n, 'n'),
                notNamespaces: names(n, 'm'),
                ipBlocks: many(n, address),
                notIpBlocks: many(n, address),
                remoteIpBlocks: many(n, address),
                notRemoteIpBlocks: many(n, address),
              },
            },
          ],
          to: [
            {
              operation: {
                hosts: many(n, host),
                notHosts: many(n, host),
                ports: many(n, (i) => `${i + 1}`),
                notPorts: many(n, (i) => `${i + 1}`),
                methods: names(n, 'M'),
                notMethods: names(n, 'N'),
                paths: names(n, '/'),
                notPaths: names(n, '/x'),
              },
            },
          ],
          when: [{ key: 'request.headers[a]', values: names(n, 'v'), notValues: names(n, 'w') }],
        },
      ],
    }),
  ]),
  grown(
    'AuthorizationPolicy: DENY with ports and targets',
    (n) => [
      spec('AuthorizationPolicy', {
        action: 'DENY',
        rules: many(n, (i) => ({ to: [{ operation: { ports: [`${1000 + i}`], paths: [`/${i}`] } }] })),
      }),
    ],
    (n) => [service(n, 'a', 'tcp')],
  ),
  grown('AuthorizationPolicy: selector', (n) => [
    spec('AuthorizationPolicy', { selector: { matchLabels: record(n, (i) => [`l${i}`, 'a']) }, rules: [{}] }),
  ]),
  grown(
    'AuthorizationPolicy: claims of tokens',
    (n) => [
      spec('AuthorizationPolicy', {
        selector: { matchLabels: { app: 'a' } },
        rules: many(n, (i) => ({
          from: [{ source: { requestPrincipals: [`https://${host(i)}/*`] } }],
          when: [
            { key: `request.auth.claims[c${i}]`, values: ['a'] },
            { key: 'request.auth.audiences', values: names(2, `a${i}`) },
          ],
        })),
      }),
    ],
    () => [
      spec('RequestAuthentication', {
        jwtRules: many(5, (i) => ({ issuer: `https://${host(i)}`, jwks: '{"keys":[]}' })),
      }),
    ],
  ),
  grown(
    'RequestAuthentication: rules',
    () => [
      spec('RequestAuthentication', {
        jwtRules: many(5, (i) => ({
          issuer: `https://${host(i)}`,
          jwksUri: `https://${host(i)}/keys`,
          audiences: [`a${i}`],
          fromHeaders: [{ name: `x-${i}`, prefix: 'B ' }],
          fromParams: [`p${i}`],
          fromCookies: [`c${i}`],
          outputPayloadToHeader: `o-${i}`,
        })),
      }),
    ],
    () => [
      spec('AuthorizationPolicy', {
        rules: many(5, (i) => ({ from: [{ source: { requestPrincipals: [`https://${host(i)}/*`] } }] })),
      }),
    ],
  ),
  grown('RequestAuthentication: lists of a rule', (n) => [
    spec('RequestAuthentication', {
      jwtRules: [
        {
          issuer: 'https://a',
          jwksUri: 'https://a/keys',
          audiences: names(n, 'a'),
          fromHeaders: many(n, (i) => ({ name: `x-${i}`, prefix: 'B ' })),
          fromParams: names(n, 'p'),
          fromCookies: names(n, 'c'),
          outputClaimToHeaders: many(n, (i) => ({ header: `o-${i}`, claim: `c${i}` })),
          spaceDelimitedClaims: names(n, 's'),
        },
      ],
    }),
  ]),
  grown('RequestAuthentication: selector', (n) => [
    spec('RequestAuthentication', {
      selector: { matchLabels: record(n, (i) => [`l${i}`, 'a']) },
      jwtRules: [{ issuer: 'https://a', jwksUri: 'https://a/keys' }],
    }),
  ]),
  grown(
    'PeerAuthentication: ports',
    (n) => [
      spec('PeerAuthentication', {
        selector: { matchLabels: { app: 'a' } },
        mtls: { mode: 'STRICT' },
        portLevelMtls: record(n, (i) => [`${1000 + i}`, { mode: 'DISABLE' }]),
      }),
    ],
    (n) => [service(n)],
  ),
  grown('PeerAuthentication: selector', (n) => [
    spec('PeerAuthentication', {
      selector: { matchLabels: record(n, (i) => [`l${i}`, 'a']) },
      mtls: { mode: 'STRICT' },
    }),
  ]),
  grown('ProxyConfig: variables, selector', (n) => [
    spec('ProxyConfig', {
      selector: { matchLabels: record(n, (i) => [`l${i}`, 'a']) },
      environmentVariables: record(n, (i) => [`V${i}`, 'a']),
    }),
  ]),
  grown(
    'WorkloadEntry: labels, ports',
    (n) => [
      spec('WorkloadEntry', {
        address: address(0),
        labels: { app: 'a', ...record(n, (i) => [`l${i}`, 'a']) },
        ports: record(n, (i) => [`http-${i}`, 7000 + i]),
      }),
    ],
    (n) => [
      entry({ workloadSelector: { labels: { app: 'a' } }, ports: many(n, port as (i: number) => object) }),
      service(n),
    ],
  ),
  grown(
    'WorkloadEntry: of many Services',
    () => [spec('WorkloadEntry', { address: address(0), labels: { app: 'a' } })],
    (n) => many(n, (i) => service(1, `s${i}`)),
  ),
  grown(
    'EndpointSlice: endpoints',
    (n) => [
      make(
        'EndpointSlice',
        'a-1',
        {
          addressType: 'IPv4',
          endpoints: many(n, (i) => ({
            addresses: [address(i)],
            zone: `z${i}`,
            nodeName: `n${i}`,
            targetRef: { kind: 'Pod', name: `p${i}`, namespace: 'shop' },
          })),
          ports: [{ name: 'http-0', port: 80 }],
        },
        { labels: { 'kubernetes.io/service-name': 'a' } },
      ),
    ],
    () => [
      rule({
        trafficPolicy: {
          outlierDetection: {},
          loadBalancer: { localityLbSetting: { enabled: true, failover: [{ from: 'a', to: 'b' }] } },
        },
        subsets: [{ name: 'x', labels: { a: 'b' } }],
      }),
    ],
  ),
  grown(
    'EndpointSlice: ports',
    (n) => [
      make(
        'EndpointSlice',
        'a-1',
        {
          addressType: 'IPv4',
          endpoints: [{ addresses: [address(0)] }],
          ports: many(n, (i) => ({ name: `http-${i}`, port: 80 + i })),
        },
        { labels: { 'kubernetes.io/service-name': 'a' } },
      ),
    ],
    (n) => [service(n)],
  ),
  grown('EndpointSlice: addresses of an endpoint', (n) => [
    make(
      'EndpointSlice',
      'a-1',
      { addressType: 'IPv4', endpoints: [{ addresses: many(n, address) }], ports: [{ name: 'http-0', port: 80 }] },
      { labels: { 'kubernetes.io/service-name': 'a' } },
    ),
  ]),
  grown(
    'EndpointSlice: of a headless Service',
    (n) => [
      make(
        'EndpointSlice',
        'a-1',
        {
          addressType: 'IPv4',
          endpoints: many(n, (i) => ({ addresses: [address(i)] })),
          ports: [{ name: 'tcp-0', port: 1000 }],
        },
        { labels: { 'kubernetes.io/service-name': 'a' } },
      ),
    ],
    () => [spec('Service', { clusterIP: 'None', ports: [{ name: 'tcp-0', port: 1000 }] }, 'a')],
  ),
  grown(
    'Service: ports',
    (n) => [service(n)],
    (n) => [
      vs({ hosts: ['a'], http: [toA] }),
      rule({
        trafficPolicy: { portLevelSettings: many(n, (i) => ({ port: { number: 1000 + i }, tls: { mode: 'SIMPLE' } })) },
      }),
      make(
        'EndpointSlice',
        'a-1',
        {
          addressType: 'IPv4',
          endpoints: [{ addresses: [address(0)] }],
          ports: many(n, (i) => ({ name: `http-${i}`, port: 80 + i })),
        },
        { labels: { 'kubernetes.io/service-name': 'a' } },
      ),
    ],
  ),
];
