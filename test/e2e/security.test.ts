import { afterEach, beforeAll, describe, test } from 'vitest';
import { afterSuite } from '../../src/testing/on-end.ts';
import { gateway, object, virtualService } from '../features/objects.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { withPeers } from '../peers/with-peers.ts';
import { jwks, tokenOf } from './callers.ts';
import {
  type Caller,
  SecuredMesh,
  authorizationPolicy,
  peerAuthentication,
  requestAuthentication,
} from './secured-mesh.ts';

const token = { headers: { authorization: `Bearer ${tokenOf({ iss: 'issuer', sub: 'alice' })}` } };

/** Who asks, in the order of the columns below. */
const callers: readonly Caller[] = [
  {},
  token,
  { as: 'client' },
  { as: 'client', ...token },
  { as: 'stranger' },
  { as: 'foreign' },
];

/** As the columns say: a status, `echoed`, or `-` where there is no answer. */
const columns = (answers: string) =>
  answers
    .trim()
    .split(/ +/)
    .map((answer, i) => [callers[i]!, answer === '-' ? 'closed' : Number(answer) || answer] as const);

const tokens = requestAuthentication('tokens', { jwtRules: [{ issuer: 'issuer', jwks }] });
const policies = (namespace: string) => ({
  none: [],
  account: [
    authorizationPolicy(
      'account',
      { rules: [{ from: [{ source: { principals: ['cluster.local/ns/shop/sa/client'] } }] }] },
      namespace,
    ),
  ],
  token: [
    { ...tokens, metadata: { ...tokens.metadata, namespace } },
    authorizationPolicy(
      'token',
      { rules: [{ from: [{ source: { requestPrincipals: ['issuer/alice'] } }] }] },
      namespace,
    ),
  ],
});

withPeers(['envoy'], 'real Envoys with certificates of the authority', () => {
  const onEnd = afterSuite();
  let mesh: SecuredMesh;
  beforeAll(async () => {
    mesh = await SecuredMesh.start(onEnd);
  });
  afterEach(() => mesh.reset());

  describe('a workload lets in whom the mode and the policy allow', () => {
    let workload: Awaited<ReturnType<SecuredMesh['workload']>>;
    beforeAll(async () => {
      workload = await mesh.workload();
    });

    //                                        plain token  client both stranger foreign
    test.each<[keyof ReturnType<typeof policies>, string, string, string]>([
      ['none', 'PERMISSIVE', '200 200 200 200 200 -', 'echoed echoed echoed echoed echoed -'],
      ['none', 'STRICT', '    -   -   200 200 200 -', '-      -      echoed echoed echoed -'],
      ['none', 'DISABLE', '   200 200 -   -   -   -', 'echoed echoed -      -      -      -'],
      ['account', 'PERMISSIVE', '403 403 200 200 403 -', '-      -      echoed echoed -      -'],
      ['account', 'STRICT', '    -   -   200 200 403 -', '-      -      echoed echoed -      -'],
      ['account', 'DISABLE', '   403 403 -   -   -   -', '-      -      -      -      -      -'],
      // A connection has no token: on a TCP port, nobody is let in.
      ['token', 'PERMISSIVE', '403 200 403 200 403 -', '-      -      -      -      -      -'],
      ['token', 'STRICT', '    -   -   403 200 403 -', '-      -      -      -      -      -'],
      ['token', 'DISABLE', '   403 200 -   -   -   -', '-      -      -      -      -      -'],
    ])('policy: %s, mode: %s', async (policy, mode, http, tcp) => {
      await mesh.apply(peerAuthentication('default', { mtls: { mode } }), ...policies('shop')[policy]);
      await workload.http.answers(columns(http));
      await workload.detected.answers(columns(http));
      await workload.tcp.answers(columns(tcp));
    });
  });

  describe('a gateway lets in whom its TLS and the policy allow, whatever the mode of the mesh', () => {
    let router: Awaited<ReturnType<SecuredMesh['router']>>;
    let ports: readonly number[];
    const [HTTP, SIMPLE, MUTUAL, ISTIO_MUTUAL, TCP, TLS] = [0, 1, 2, 3, 4, 5];
    beforeAll(async () => {
      ports = await freePorts(6);
      router = await mesh.router();
    });

    const server = (i: number, name: string, protocol: string, tls?: object) => ({
      port: { number: ports[i], name, protocol },
      hosts: ['*'],
      ...(tls && { tls }),
    });
    const to = (host: string) => [{ destination: { host: `${host}.example.com`, port: { number: 80 } } }];
    const served = async () => {
      const { certificate, key, roots } = await mesh.ca.certify('edge', 'public');
      return [
        { ...object('v1', 'Secret', 'public', {}, 'edge'), stringData: { 'tls.crt': certificate, 'tls.key': key } },
        { ...object('v1', 'Secret', 'public-cacert', {}, 'edge'), stringData: { 'ca.crt': roots } },
        peerAuthentication('default', { mtls: { mode: 'STRICT' } }, 'istio-system'),
        gateway(
          'public',
          {
            selector: { istio: 'ingress' },
            servers: [
              server(HTTP, 'http', 'HTTP'),
              server(SIMPLE, 'https', 'HTTPS', { mode: 'SIMPLE', credentialName: 'public' }),
              server(MUTUAL, 'https-mutual', 'HTTPS', { mode: 'MUTUAL', credentialName: 'public' }),
              server(ISTIO_MUTUAL, 'https-mesh', 'HTTPS', { mode: 'ISTIO_MUTUAL' }),
              server(TCP, 'tcp', 'TCP'),
              server(TLS, 'tls-mesh', 'TLS', { mode: 'ISTIO_MUTUAL' }),
            ],
          },
          'edge',
        ),
        virtualService(
          'http',
          { hosts: ['shop.example.com'], gateways: ['public'], http: [{ route: to('mirror') }] },
          'edge',
        ),
        virtualService(
          'tcp',
          {
            hosts: ['*'],
            gateways: ['public'],
            tcp: [TCP, TLS].map((i) => ({ match: [{ port: ports[i] }], route: to('echo') })),
          },
          'edge',
        ),
      ];
    };

    //             plain token  client both stranger foreign
    test.each<[keyof ReturnType<typeof policies>, readonly string[]]>([
      [
        'none',
        [
          '200    200    -      -      -      -',
          '-      -      200    200    200    200',
          '-      -      200    200    200    -',
          '-      -      200    200    200    -',
          'echoed echoed -      -      -      -',
          '-      -      echoed echoed echoed -',
        ],
      ],
      [
        'account',
        [
          '403    403    -      -      -      -',
          '-      -      403    403    403    403',
          '-      -      200    200    403    -',
          '-      -      200    200    403    -',
          '-      -      -      -      -      -',
          '-      -      echoed echoed -      -',
        ],
      ],
      [
        'token',
        [
          '403    200    -      -      -      -',
          '-      -      403    200    403    403',
          '-      -      403    200    403    -',
          '-      -      403    200    403    -',
          '-      -      -      -      -      -',
          '-      -      -      -      -      -',
        ],
      ],
    ])('policy: %s', async (policy, rows) => {
      await mesh.apply(...(await served()), ...policies('edge')[policy]);
      for (const [i, row] of rows.entries())
        if (i === TCP || i === TLS) await router.tcp(ports[i]!).answers(columns(row));
        else await router.http(ports[i]!).answers(columns(row));
    });
  });
});
