import { describe, expect, test } from 'vitest';
import type { Json } from '../encode/proto.ts';
import { type ClustersCase, clusterOf, httpOptionsOf, type Members } from '../testing/clusters.ts';
import { entryOf, port, serviceOf } from '../testing/listeners.ts';

const spiffe = 'spiffe://cluster.local/ns/shop/sa/a';
const crl = { filename: '/crl.pem' };
const files = { clientCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: '/ca.pem' };

function tlsRule(tls: object, more: object = {}): Pick<ClustersCase, 'rule'> {
  return { rule: { trafficPolicy: { tls }, ...more } };
}

/** The names of the sockets that a cluster may use: one, or several to match. */
function socketsOf(cluster: Members): Json[] {
  const matches = (cluster['transportSocketMatches'] ?? []) as unknown as { name: string }[];
  return cluster['transportSocket'] === undefined ? matches.map((match) => match.name) : ['always'];
}

/** The TLS context of the only socket, or of the one for peers. */
function contextOf(cluster: Members): Record<string, unknown> {
  const [match] = (cluster['transportSocketMatches'] ?? []) as unknown as { transportSocket: Json }[];
  const socket = (cluster['transportSocket'] ?? match?.transportSocket) as unknown as { typedConfig: object };
  return socket.typedConfig as Record<string, unknown>;
}

describe('mutual TLS of the mesh, without a rule', () => {
  test('is used with the endpoints that are marked for it', () => {
    const cluster = clusterOf({ summary: { identities: [spiffe] } });
    expect(socketsOf(cluster)).toEqual(['tlsMode-istio', 'tlsMode-disabled']);
    expect(contextOf(cluster)).toMatchObject({
      sni: 'outbound_.80_._.a.shop.svc.cluster.local',
      commonTlsContext: {
        alpnProtocols: ['istio'],
        combinedValidationContext: { defaultValidationContext: { matchSubjectAltNames: [{ exact: spiffe }] } },
      },
    });
  });

  test.each<[string, ClustersCase]>([
    ['the proxy has no agent', { traits: { agent: false } }],
    ['the mesh has none', { mesh: 'enableAutoMtls: false' }],
    ['the service is outside', { service: entryOf('x.example.com', [port(80, 'HTTP')], { meshExternal: true }) }],
    ['a rule says so', tlsRule({ mode: 'DISABLE' })],
    [
      'a headless service has an endpoint without it',
      { service: serviceOf('a', [port(80, 'HTTP')], { resolution: 'Passthrough' }), summary: { plaintext: true } },
    ],
  ])('is not there when %s', (_, given) => {
    expect(socketsOf(clusterOf(given))).toEqual([]);
  });

  test('is used always with a headless service whose endpoints all have it', () => {
    const service = serviceOf('a', [port(80, 'HTTP')], { resolution: 'Passthrough' });
    expect(socketsOf(clusterOf({ service }))).toEqual(['always']);
  });

  test('offers HTTP/2 where it is spoken', () => {
    const cluster = clusterOf({ service: serviceOf('a', [port(80, 'GRPC')]) });
    expect(contextOf(cluster)).toMatchObject({ commonTlsContext: { alpnProtocols: ['istio', 'h2'] } });
  });

  test('accepts the identities in every trust domain, and names that the service adds, in order', () => {
    const service = serviceOf('a', [port(80, 'HTTP')], { subjectAltNames: ['x.example.com', 'spiffe://b/other'] });
    const given = { service, summary: { identities: [spiffe] }, mesh: 'trustDomainAliases: [old]' };
    expect(contextOf(clusterOf(given))).toMatchObject({
      commonTlsContext: {
        combinedValidationContext: {
          defaultValidationContext: {
            matchSubjectAltNames: [
              { exact: 'spiffe://b/other' },
              { exact: spiffe },
              { exact: 'spiffe://old/ns/shop/sa/a' },
              { exact: 'x.example.com' },
            ],
          },
        },
      },
    });
  });

  test('uses the files that the proxy names, with every endpoint', () => {
    const cluster = clusterOf({ traits: { clientCertificate: { chain: '/c', key: '/k', root: '/r' } } });
    expect(socketsOf(cluster)).toEqual(['always']);
    expect(contextOf(cluster)).toMatchObject({
      sni: 'outbound_.80_._.a.shop.svc.cluster.local',
      commonTlsContext: { tlsCertificateSdsSecretConfigs: [{ name: 'file-cert:/c~/k' }] },
    });
  });
});

describe('ISTIO_MUTUAL', () => {
  test('is used with every endpoint, with the names and server name of the rule', () => {
    const cluster = clusterOf(tlsRule({ mode: 'ISTIO_MUTUAL', sni: 'x.y', subjectAltNames: ['spiffe://z'] }));
    expect(socketsOf(cluster)).toEqual(['always']);
    expect(contextOf(cluster)).toMatchObject({
      sni: 'x.y',
      commonTlsContext: {
        combinedValidationContext: {
          defaultValidationContext: { matchSubjectAltNames: [{ exact: 'spiffe://z' }] },
          validationContextSdsSecretConfig: { name: 'ROOTCA' },
        },
      },
    });
  });

  test('reads no list of revoked certificates, as in Istio', () => {
    const cluster = clusterOf(tlsRule({ mode: 'ISTIO_MUTUAL' }));
    expect(clusterOf(tlsRule({ mode: 'ISTIO_MUTUAL', caCrl: '/crl.pem' }))).toEqual(cluster);
  });

  test('has no meaning for a proxy without the certificates of the mesh', () => {
    expect(socketsOf(clusterOf({ ...tlsRule({ mode: 'ISTIO_MUTUAL' }), traits: { agent: false } }))).toEqual([]);
  });
});

describe('SIMPLE and MUTUAL', () => {
  const autoSni = (cluster: Members) => httpOptionsOf(cluster)?.['upstreamHttpProtocolOptions'];

  test('take server name and accepted names from the request where the rule has none', () => {
    expect(autoSni(clusterOf(tlsRule({ mode: 'SIMPLE' })))).toEqual({ autoSni: true, autoSanValidation: true });
    expect(autoSni(clusterOf(tlsRule({ mode: 'SIMPLE', subjectAltNames: ['x'] })))).toEqual({ autoSni: true });
    expect(autoSni(clusterOf(tlsRule({ mode: 'SIMPLE', insecureSkipVerify: true })))).toEqual({ autoSni: true });
    expect(autoSni(clusterOf(tlsRule({ mode: 'SIMPLE', sni: 'x' })))).toBeUndefined();
  });

  test('are marked for the filter of istio-proxy that would change the protocols', () => {
    const metadata = (tls: object) => JSON.stringify(clusterOf(tlsRule(tls))['metadata']);
    expect(metadata({ mode: 'SIMPLE' })).toContain('"alpn_override":"false"');
    expect(metadata({ mode: 'ISTIO_MUTUAL' })).not.toContain('alpn_override');
  });

  test.each<[string, object, object]>([
    [
      'the roots of the system, by the agent',
      { mode: 'SIMPLE' },
      { combinedValidationContext: { validationContextSdsSecretConfig: { name: 'file-root:system' } } },
    ],
    [
      'files, by the agent',
      { mode: 'MUTUAL', ...files },
      {
        tlsCertificateSdsSecretConfigs: [{ name: 'file-cert:/c.pem~/k.pem' }],
        combinedValidationContext: { validationContextSdsSecretConfig: { name: 'file-root:/ca.pem' } },
      },
    ],
    [
      'a certificate of its own by the agent, and roots from a Secret',
      { mode: 'MUTUAL', ...files, caCertificates: undefined, caCertCredentialName: 'roots' },
      {
        tlsCertificateSdsSecretConfigs: [{ name: 'file-cert:/c.pem~/k.pem' }],
        combinedValidationContext: { validationContextSdsSecretConfig: { name: 'kubernetes://roots-cacert' } },
      },
    ],
    ['nothing is verified', { mode: 'SIMPLE', insecureSkipVerify: true }, { validationContext: {} }],
  ])('%s', (_, tls, context) => {
    expect(contextOf(clusterOf(tlsRule(tls)))).toMatchObject({ commonTlsContext: context });
  });

  test('read the files themselves where there is no agent', () => {
    const plain = (tls: object) =>
      contextOf(clusterOf({ ...tlsRule(tls), traits: { agent: false } }))['commonTlsContext'];
    expect(plain({ mode: 'SIMPLE', subjectAltNames: ['x'] })).toMatchObject({
      validationContext: {
        trustedCa: { filename: '/etc/ssl/certs/ca-certificates.crt' },
        matchSubjectAltNames: [{ exact: 'x' }],
      },
    });
    expect(plain({ mode: 'MUTUAL', ...files })).toMatchObject({
      tlsCertificates: [{ certificateChain: { filename: '/c.pem' }, privateKey: { filename: '/k.pem' } }],
      validationContext: { trustedCa: { filename: '/ca.pem' } },
    });
  });

  test('a credential is asked of the control plane, by every proxy', () => {
    const tls = { mode: 'MUTUAL', credentialName: 'cred' };
    for (const cluster of [clusterOf(tlsRule(tls)), clusterOf({ ...tlsRule(tls), traits: { proxyType: 'router' } })])
      expect(contextOf(cluster)).toMatchObject({
        commonTlsContext: {
          tlsCertificateSdsSecretConfigs: [{ name: 'kubernetes://cred', sdsConfig: { ads: {} } }],
          combinedValidationContext: { validationContextSdsSecretConfig: { name: 'kubernetes://cred-cacert' } },
        },
      });
    const simple = JSON.stringify(contextOf(clusterOf(tlsRule({ mode: 'SIMPLE', credentialName: 'cred' }))));
    expect(simple).not.toContain('tlsCertificateSdsSecretConfigs');
  });

  test('the names of a ServiceEntry are accepted where the rule has none', () => {
    const service = entryOf('x.example.com', [port(80, 'HTTP')], { subjectAltNames: ['san'] });
    const given = { service, ...tlsRule({ mode: 'SIMPLE' }, { host: 'x.example.com' }) };
    expect(JSON.stringify(contextOf(clusterOf(given)))).toContain('{"exact":"san"}');
  });
});

test('the PROXY header stands before whatever is spoken', () => {
  const proxyProtocol = { version: 'V2' };
  const wrapped = (tls: object) => {
    const cluster = clusterOf({ rule: { trafficPolicy: { proxyProtocol, ...tls } } });
    return JSON.stringify(cluster['transportSocket'] ?? cluster['transportSocketMatches']);
  };
  expect(wrapped({ tls: { mode: 'DISABLE' } })).toMatch(/upstream_proxy_protocol.*"version":"V2".*raw_buffer/);
  expect(wrapped({ tls: { mode: 'SIMPLE', sni: 'x' } })).toMatch(/upstream_proxy_protocol.*transport_sockets\.tls/);
  expect(wrapped({}).match(/"envoy.transport_sockets.upstream_proxy_protocol"/g)).toHaveLength(2);
});

test.each<[string, ClustersCase['traits'], object, object]>([
  [
    'through the agent',
    {},
    { caCertificates: '/ca.pem' },
    { combinedValidationContext: { defaultValidationContext: { crl } } },
  ],
  ['by Envoy', { agent: false }, { caCertificates: '/ca.pem' }, { validationContext: { crl } }],
  ['with the roots of the system', { agent: false }, {}, { validationContext: { crl } }],
])('revoked certificates stand in a file, that is read %s', (_, traits, more, expected) => {
  const cluster = clusterOf({ ...tlsRule({ mode: 'SIMPLE', caCrl: '/crl.pem', ...more }), ...(traits && { traits }) });
  expect(contextOf(cluster)).toMatchObject({ commonTlsContext: expected });
});
