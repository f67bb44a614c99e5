import { expect, test } from 'vitest';
import type { GatewayModel } from '../../model/gateway.ts';
import { reconcileGateway } from './gateway.ts';

const http = { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] };
const https = (tls: object) => ({ port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: ['*'], tls });

function reconcile(spec: unknown, name = 'g') {
  return reconcileGateway(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'Gateway',
      metadata: { name, namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z' },
      spec,
    },
    { source: 'test' },
  );
}

function modelOf(spec: unknown): GatewayModel {
  const { models, problems } = reconcile(spec);
  expect(problems).toEqual([]);
  return models[0]!;
}

/** `reason field: message` */
function problemsOf(spec: unknown): string[] {
  return reconcile(spec).problems.map(({ reason, field, message }) => `${reason} ${field}: ${message}`);
}

test('servers keep their order, with hosts taken apart into namespace and name', () => {
  const model = modelOf({
    selector: { istio: 'ingress' },
    servers: [
      { ...http, name: 'front', bind: '10.0.0.1', hosts: ['a.example.com', './b.example.com', '*/*', 'x/1.2.3.4'] },
    ],
  });
  expect(model).toMatchObject({
    key: 'test/shop/g',
    selector: { istio: 'ingress' },
    createdAt: '2026-01-01T00:00:00Z',
  });
  expect(model.servers).toEqual([
    {
      field: 'spec.servers[0]',
      name: 'front',
      port: { number: 80, name: 'http', protocol: 'HTTP' },
      bind: '10.0.0.1',
      hosts: [
        { namespace: '*', host: 'a.example.com' },
        { namespace: 'shop', host: 'b.example.com' },
        { namespace: '*', host: '*' },
        { namespace: 'x', host: '1.2.3.4' },
      ],
      httpsRedirect: false,
      serves: { kind: 'http' },
    },
  ]);
});

test('a plaintext HTTP server may redirect to https', () => {
  expect(modelOf({ servers: [{ ...http, tls: { httpsRedirect: true } }] }).servers[0]).toMatchObject({
    httpsRedirect: true,
    serves: { kind: 'http' },
  });
});

test.each([
  ['HTTP', undefined, 'http'],
  ['http2', undefined, 'http'],
  ['GRPC-WEB', undefined, 'http'],
  ['TCP', undefined, 'tcp'],
  ['MONGO', undefined, 'tcp'],
  ['HTTPS', {}, 'passthrough'],
  ['HTTPS', { mode: 'AUTO_PASSTHROUGH' }, 'autoPassthrough'],
  ['TLS', { mode: 'PASSTHROUGH' }, 'passthrough'],
  ['HTTPS', { mode: 'ISTIO_MUTUAL' }, 'https'],
  ['TLS', { mode: 'ISTIO_MUTUAL' }, 'tls'],
])('protocol %s with tls %j is served as %s', (protocol, tls, kind) => {
  const { models } = reconcile({ servers: [{ port: { number: 9, name: 'p', protocol }, hosts: ['*'], tls }] });
  expect(models[0]?.servers[0]?.serves.kind).toBe(kind);
});

test('a unix socket has port 0', () => {
  const server = { ...http, bind: 'unix:///tmp/x', port: { ...http.port, number: 0 } };
  expect(modelOf({ servers: [server] }).servers[0]).toMatchObject({ bind: 'unix:///tmp/x', port: { number: 0 } });
});

const files = { serverCertificate: '/c', privateKey: '/k' };

test('certificates come from files, with the checks of clients', () => {
  const tls = {
    mode: 'MUTUAL',
    ...files,
    caCertificates: '/ca',
    subjectAltNames: ['a'],
    minProtocolVersion: 'TLSV1_2',
    maxProtocolVersion: 'TLS_AUTO',
    cipherSuites: ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256', '[AES128-SHA|AES256-SHA]'],
    caCrl: '/crl',
  };
  expect(modelOf({ servers: [https(tls)] }).servers[0]?.serves).toEqual({
    kind: 'https',
    tls: {
      mode: 'MUTUAL',
      certificates: { kind: 'files', files: [{ certificate: '/c', key: '/k' }], roots: '/ca' },
      subjectAltNames: ['a'],
      verifyCertificateSpki: [],
      verifyCertificateHash: [],
      caCrl: '/crl',
      insecureSkipVerify: false,
      minProtocolVersion: 'TLSV1_2',
      cipherSuites: ['ECDHE-RSA-AES128-GCM-SHA256', '[AES128-SHA|AES256-SHA]'],
      ecdhCurves: [],
      alpnProtocols: [],
    },
  });
});

test('curves that Envoy does not know are left out, and said', () => {
  const tls = { mode: 'SIMPLE', ...files, ecdhCurves: ['P-224', 'P-256', '', 'P-256'] };
  const { models, problems } = reconcile({ servers: [https(tls)] });
  expect(models[0]?.servers[0]?.serves).toMatchObject({ tls: { ecdhCurves: ['P-256'] } });
  expect(problems).toMatchObject([{ field: 'spec.servers[0].tls.ecdhCurves[0]', reason: 'Ineffective' }]);
});

test('protocols that TLS cannot offer, or too many of them, are invalid', () => {
  const fieldsOf = (alpnProtocols: string[]) =>
    reconcile({ servers: [https({ mode: 'SIMPLE', ...files, alpnProtocols })] }).problems.map(({ field }) => field);
  const at = (index: number) => `spec.servers[0].tls.alpnProtocols[${index}]`;
  expect(fieldsOf(['h2', '', 'a,b', 'x'.repeat(256), 'x'.repeat(255)])).toEqual([at(1), at(2), at(3)]);
  expect(fieldsOf(Array.from({ length: 101 }, (_, i) => `p${i}`))).toEqual(['spec.servers[0].tls.alpnProtocols']);
});

test('a wildcard may stand for a part of a name where there is no TLS', () => {
  expect(modelOf({ servers: [{ ...http, hosts: ['*-a.example.com'] }] }).servers[0]?.hosts[0]?.host).toBe(
    '*-a.example.com',
  );
  expect(reconcile({ servers: [{ ...https({}), hosts: ['*/*.a.b', './*', '*'] }] }).problems).toEqual([]);
});

test('several pairs of files are for keys of different kinds', () => {
  const tls = { mode: 'SIMPLE', tlsCertificates: [files, { serverCertificate: '/c2', privateKey: '/k2' }] };
  expect(modelOf({ servers: [https(tls)] }).servers[0]?.serves).toMatchObject({
    tls: {
      certificates: {
        files: [
          { certificate: '/c', key: '/k' },
          { certificate: '/c2', key: '/k2' },
        ],
      },
    },
  });
});

test('Secrets are referred to', () => {
  const spec = { servers: [https({ mode: 'SIMPLE', credentialNames: ['rsa', 'ecdsa'] })] };
  const { models, problems } = reconcile(spec);
  expect(models[0]?.servers[0]?.serves).toMatchObject({
    tls: { certificates: { kind: 'credentials', names: ['rsa', 'ecdsa'], roots: '' } },
  });
  expect(problems).toEqual([]);
});

const refused: readonly (readonly [spec: unknown, ...expected: string[]])[] = [
  [{}, 'Invalid spec.servers: must have at least one server.'],
  [{ servers: [{ ...http, hosts: [] }] }, 'Invalid spec.servers[0].hosts: must have at least one host'],
  [{ servers: [{ ...http, hosts: ['short'] }] }, 'Invalid spec.servers[0].hosts[0]: "short" is not a full host name'],
  [{ servers: [{ ...http, hosts: ['NS/a.b'] }] }, 'Invalid spec.servers[0].hosts[0]: "NS" is not a namespace'],
  [{ servers: [{ ...http, hosts: ['a/b/c.d'] }] }, 'Invalid spec.servers[0].hosts[0]: "b/c.d" is not a full host name'],
  [{ servers: [{ hosts: ['*'] }] }, 'Invalid spec.servers[0].port.number: must be the port to open.'],
  [{ servers: [{ ...http, port: { ...http.port, number: 70_000 } }] }, 'Invalid spec.servers[0].port.number: must be'],
  [{ servers: [{ ...http, port: { ...http.port, name: '' } }] }, 'Invalid spec.servers[0].port.name: must name'],
  [{ servers: [http, http] }, 'Invalid spec.servers[1].port.name: "http" is the name of another port'],
  [
    { servers: [{ ...http, port: { ...http.port, protocol: 'QUIC' } }] },
    'Invalid spec.servers[0].port.protocol: "QUIC"',
  ],
  [{ servers: [{ ...http, port: { ...http.port, protocol: 'UDP' } }] }, 'Invalid spec.servers[0].port.protocol: "UDP"'],
  [{ servers: [{ ...http, bind: 'example.com' }] }, 'Invalid spec.servers[0].bind: "example.com" is neither'],
  [
    { servers: [{ ...http, bind: `unix:///${'x'.repeat(107)}`, port: { ...http.port, number: 0 } }] },
    'Invalid spec.servers[0].bind',
  ],
  [{ servers: [{ ...http, bind: 'unix:///x' }] }, 'Invalid spec.servers[0].port.number: must be a whole number from 0'],
  [{ servers: [https(undefined as never)] }, 'Invalid spec.servers[0].tls: must be set, because the protocol'],
  [{ servers: [https({ mode: 'NONE' })] }, 'Invalid spec.servers[0].tls.mode: "NONE" is not one of'],
  [{ servers: [{ ...http, tls: { mode: 'SIMPLE', ...files } }] }, 'Invalid spec.servers[0].tls: can only set'],
  [
    { servers: [{ ...http, port: { ...http.port, protocol: 'TCP' }, tls: {} }] },
    'Invalid spec.servers[0].tls: requires protocol HTTPS or TLS',
  ],
  [
    { servers: [https({ mode: 'SIMPLE' })] },
    'Invalid spec.servers[0].tls.serverCertificate: must name a file in mode SIMPLE',
    'Invalid spec.servers[0].tls.privateKey: must name a file in mode SIMPLE',
  ],
  [
    { servers: [https({ mode: 'MUTUAL', ...files })] },
    'Invalid spec.servers[0].tls.caCertificates: must name the CA file',
  ],
  [
    { servers: [https({ mode: 'SIMPLE', ...files, tlsCertificates: [files] })] },
    'Invalid spec.servers[0].tls: must have only one of',
  ],
  [
    { servers: [https({ mode: 'ISTIO_MUTUAL', privateKey: '/k' })] },
    'Invalid spec.servers[0].tls.privateKey: cannot be set in mode ISTIO_MUTUAL',
  ],
  [
    { servers: [https({ mode: 'SIMPLE', ...files, caCrl: '/crl' })] },
    'Invalid spec.servers[0].tls.caCrl: is for client certificates',
  ],
  [
    { servers: [https({ mode: 'SIMPLE', ...files, minProtocolVersion: 'TLSV1_3', maxProtocolVersion: 'TLSV1_2' })] },
    'Invalid spec.servers[0].tls.minProtocolVersion: TLSV1_3 is above maxProtocolVersion.',
  ],
  [
    { servers: [https({ mode: 'SIMPLE', ...files, cipherSuites: ['ALL', '-ALL'] })] },
    'Invalid spec.servers[0].tls.cipherSuites: leaves no cipher suite',
  ],
  [
    { servers: [https({ mode: 'MUTUAL', ...files, verifyCertificateHash: ['x'], verifyCertificateSpki: ['y'] })] },
    'Invalid spec.servers[0].tls.verifyCertificateHash[0]: "x" is not a SHA-256 hash in hexadecimal.',
    'Invalid spec.servers[0].tls.verifyCertificateSpki[0]: "y" is not a SHA-256 hash in base64.',
  ],
  [
    { servers: [{ ...https({}), hosts: ['*/*a.example.com'] }] },
    'Invalid spec.servers[0].hosts[0]: "*/*a.example.com" has a wildcard for part of a name',
  ],
];

test.each(refused.map(([spec, ...expected]) => ({ spec, expected })))('$spec is refused', ({ spec, expected }) => {
  const found = problemsOf(spec);
  for (const text of expected) expect(found).toContainEqual(expect.stringContaining(text));
  expect(reconcile(spec).models).toEqual([]);
});

test.each([
  [
    { mode: 'SIMPLE', ...files, cipherSuites: ['NOT-A-CIPHER'] },
    'Ineffective spec.servers[0].tls.cipherSuites[0]: "NOT-A-CIPHER" has',
  ],
  [
    { mode: 'SIMPLE', ...files, subjectAltNames: ['a'] },
    'Ineffective spec.servers[0].tls.subjectAltNames: The field has no effect.',
  ],
  [
    { mode: 'PASSTHROUGH', credentialName: 'c' },
    'Ineffective spec.servers[0].tls.credentialName: "c" has no effect. In mode',
  ],
  [
    { mode: 'PASSTHROUGH', httpsRedirect: true },
    'Ineffective spec.servers[0].tls.httpsRedirect: The field has no effect.',
  ],
  [
    { mode: 'AUTO_PASSTHROUGH', credentialName: 'c' },
    'Ineffective spec.servers[0].tls.credentialName: "c" has no effect. In mode',
  ],
])('%j is served, and its owner hears what has no effect', (tls, expected) => {
  const spec = { servers: [https(tls)] };
  expect(problemsOf(spec)).toEqual([expect.stringContaining(expected)]);
  expect(reconcile(spec).models).toHaveLength(1);
});

test('the name of a Gateway has no dots', () => {
  expect(reconcile({ servers: [http] }, 'a.b').problems).toMatchObject([{ field: 'metadata.name', reason: 'Invalid' }]);
});

test.each([null, 1, 'x', [], { servers: 1 }, { servers: [null, 1, {}] }, { servers: [{ port: 1, hosts: 1, tls: 1 }] }])(
  'nothing is thrown for %j',
  (spec) => {
    const { models, problems } = reconcile(spec);
    expect(models).toEqual([]);
    expect(problems).not.toEqual([]);
  },
);
