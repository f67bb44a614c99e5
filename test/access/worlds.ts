import fc from 'fast-check';
import type { KubernetesObject } from '../../src/api/object.ts';
import { jwtRule, names as issuers, token } from './tokens.ts';

const oneOf = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
const rarely = <T>(arbitrary: fc.Arbitrary<T>, freq = 2) => fc.option(arbitrary, { nil: undefined, freq });
const list = <T>(arbitrary: fc.Arbitrary<T>, maxLength = 3) => fc.array(arbitrary, { minLength: 1, maxLength });
const defined = <T extends object>(object: T): T => JSON.parse(JSON.stringify(object)) as T;

/** Names of which one ends as the path before service accounts does: `.../ns/` data `/sa/` sa. */
export const identities = [
  ['shop', 'client', 'cluster.local'],
  ['shop', 'sa', 'cluster.local'],
  ['data', 'client', 'cluster.local'],
  ['other', 'sa', 'cluster.local'],
  ['shop', 'client', 'old.example'],
] as const;

const principals = oneOf(
  ...['cluster.local/ns/shop/sa/client', 'cluster.local/ns/data/sa/client', 'old.example/ns/shop/sa/client'],
  ...['cluster.local/ns/shop/*', '*/ns/shop/sa/client', '*', '*/sa/client', 'cluster*', '*client', '*t'],
  ...[
    '*local/ns/shop/sa/client',
    'old*/ns/shop/sa/client',
    '*/ns/*',
    'spiffe://cluster.local/ns/shop/sa/client',
    'spiffe://*',
  ],
  ...['other.example/ns/shop/sa/client', 'CLUSTER.local/ns/shop/sa/client', 'cluster.local/ns/shop/sa/client/'],
);
const namespaces = oneOf(
  ...['shop', 'data', 'other', '*', 'sh*', '*a', '*sa', '*op', 's*p', 'd*a', '*o*', 'sho', 'shop/sa', '.*', 'shop*'],
  ...['sh.p', 'shop|data', '*/sa', 'SHOP'],
);
const accounts = oneOf('client', 'sa', 'shop/client', 'data/client', 'other/sa', 'cli.nt', 'a/b/c', '*');
const trustDomains = oneOf('cluster.local', 'old.example', '*', 'cluster*', '*example', 'cluster.loca', '*a*', 'a/b');
const addresses = oneOf(
  ...[
    '127.0.0.1',
    '127.0.0.2',
    '127.0.0.0/31',
    '127.0.0.2/31',
    '127.0.0.8/30',
    '127.0.0.9',
    '10.0.0.0/8',
    '::1',
    '0.0.0.0/0',
  ],
  ...['::/0', '10.1.2.3', '::ffff:127.0.0.1', '300.0.0.1', '127.0.0.1/33'],
);
const hosts = oneOf('server.shop', 'SERVER.shop', '*.shop', 'server*', '*', 'server.shop:80', 'other', '*p', '');
const methods = oneOf('GET', 'POST', '*', 'get', 'G*', '*T', 'OPTIONS');
const paths = oneOf(
  ...['/', '/admin', '/admin*', '/admin/*', '*/users', '*', '/a*b', '/admin?x=1', '*.html', '/admin/', '/Admin'],
  ...['/admin/{*}', '/{*}/users', '/admin/{**}', '/{**}/users', '/{*}', '/{**}', '/a/{*}/b/{**}', '/{**}/{*}', '/a{*}'],
  ...['/admin/{**}/', '/{*}/', '/a b', '/ä', '/%41dmin', '//admin', '/{**}/a/{**}', 'admin', '/adm.n', '/{*}/{**}'],
  ...['/x/{*}/delete', '/x/{**}/delete', '/{*}/[', '/*]', '/x*delete'],
);
const ports = (own: readonly number[]) => oneOf(...own.map(String), '80', '0', 'http', '*', '65536');
const requestPrincipals = oneOf(
  ...['*', 'https://a.example/alice', 'b/alice', 'c/d/alice', 'https://a.example/*', '*/alice', '*example/alice'],
  ...['b/team/alice', 'c/d/e', 'c/d/team/*', 'c/*', '*/team/alice', '*team/alice', '*d/alice', 'https://a*', '*/d/*'],
  ...['b/a\nb', 'b/team*', '*m/alice', 'c/d*', 'c/d/team/alice'],
  ...['alice', '*alice', 'b*', 'b/al*', 'https://a*', 'b/', 'c/*', '/alice', '*/', '**', 'https*'],
);

const keys = (own: readonly number[]) =>
  fc.oneof(
    value('source.ip', addresses),
    value('remote.ip', addresses),
    value('source.namespace', namespaces),
    value('source.principal', principals),
    value('source.serviceAccount', accounts),
    value('source.trustDomain', trustDomains),
    value('request.auth.principal', requestPrincipals),
    value('request.auth.audiences', oneOf('shop', 'other', 'https://shop.example', '*', 's*')),
    value('request.auth.presenter', oneOf('app', 'web', '*')),
    value('destination.ip', addresses),
    value('destination.port', ports(own)),
    value('connection.sni', oneOf('server.shop', '*.shop', '*', 'other')),
    value('request.headers[x-name]', oneOf('a', 'b*', '*b', '*', '', 'a,b')),
    value('request.headers[X-Name]', oneOf('a', '*')),
    value('request.headers[:path]', oneOf('/admin', '/admin*', '*x=1')),
    value('request.headers[origin]', oneOf('http://a', 'http://a,http://b', '*a', 'http*')),
    value('request.headers[user-agent]', oneOf('a', 'a,b', '*')),
    value('request.headers[authorization]', oneOf('*', 'Bearer*')),
    value('request.headers[x-jwt]', oneOf('*', 'nonsense')),
    value('request.headers[x-role]', oneOf('admin', '*')),
    value('request.headers[x_role]', oneOf('admin', '*')),
    value('request.headers[x-team]', oneOf('a', '*')),
    value('request.headers[x-payload]', oneOf('*')),
    value('request.headers[]', oneOf('a')),
    value('request.auth.claims[role]', oneOf('admin', '*', 'user', '5', 'true', 't*', '5*', '*5', 'a*', '*.5')),
    value('request.auth.claims[scope]', oneOf('read', '*', 'read write', 'wr*')),
    value('request.auth.claims[groups]', oneOf('admins', '*', 'admins users')),
    value('request.auth.claims[nested][team]', oneOf('a', '*')),
    value('request.auth.claims[nested]', oneOf('a', '*')),
    value('request.auth.claims[nested][]', oneOf('a')),
    value('request.auth.claims[iss]', oneOf(...issuers, '*')),
    value('experimental.envoy.filters.network.mysql_proxy[a.b]', oneOf('[a]', 'a', '*')),
    value('experimental.envoy.filters.http.jwt_authn[payload]', oneOf('[*]', '*')),
    value('destination.namespace', oneOf('shop')),
    value('request.size', oneOf('1')),
    value('', oneOf('1')),
  );

function value(key: string, values: fc.Arbitrary<string>) {
  const some = rarely(list(values, 2), 3);
  return fc.record({ key: fc.constant(key), values: some, notValues: rarely(list(values, 2), 1) });
}

/** Fields with values, and those with values that must not be. */
function fields(all: Readonly<Record<string, fc.Arbitrary<string>>>): fc.Arbitrary<object> {
  return fc
    .array(
      oneOf(...Object.keys(all)).chain((name) => {
        const not = `not${name[0]!.toUpperCase()}${name.slice(1)}`;
        return fc.tuple(fc.oneof({ weight: 3, arbitrary: fc.constant(name) }, fc.constant(not)), list(all[name]!));
      }),
      { minLength: 1, maxLength: 2 },
    )
    .map((pairs) => Object.fromEntries(pairs));
}

const nonsense = oneOf<unknown>(null, [], 'text', 7, {});
const mostly = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 60, arbitrary: arbitrary as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: nonsense });

function rule(own: readonly number[]): fc.Arbitrary<unknown> {
  const source = fields({
    ...{ principals, namespaces, requestPrincipals, serviceAccounts: accounts, trustDomains },
    ...{ ipBlocks: addresses, remoteIpBlocks: addresses },
  });
  const operation = fields({ hosts, methods, paths, ports: ports(own) });
  return mostly(
    fc.record({
      from: rarely(mostly(list(mostly(source.map((one) => ({ source: one }))), 2))),
      to: rarely(mostly(list(mostly(operation.map((one) => ({ operation: one }))), 2))),
      when: rarely(mostly(list(keys(own), 2)), 1),
    }),
  );
}

const security = (kind: string, name: string, spec: object, more: object = {}, namespace = 'shop'): KubernetesObject =>
  defined({
    apiVersion: 'security.istio.io/v1',
    kind,
    metadata: { name, namespace, ...more },
    spec,
  }) as unknown as KubernetesObject;

const selectors = oneOf<object | undefined>(
  undefined,
  undefined,
  { matchLabels: { app: 'server' } },
  {
    matchLabels: { app: 'other' },
  },
);

function authorizationPolicies(own: readonly number[]): fc.Arbitrary<KubernetesObject[]> {
  const policy = fc.record({
    action: oneOf(undefined, 'ALLOW', 'ALLOW', 'DENY', 'DENY', 'AUDIT', 'CUSTOM', 'Deny'),
    provider: oneOf('asked', 'asked', 'asked', 'unknown'),
    rules: rarely(fc.array(rule(own), { maxLength: 3 }), 20),
    selector: selectors,
    dryRun: oneOf(undefined, undefined, undefined, undefined, 'true', 'perhaps'),
    namespace: oneOf('shop', 'shop', 'istio-system'),
  });
  return fc.array(policy, { maxLength: 4 }).map((policies) =>
    policies.map(({ action, provider, rules, selector, dryRun, namespace }, i) => {
      const spec = { action, rules, selector, ...(action === 'CUSTOM' && { provider: { name: provider } }) };
      const annotations = dryRun === undefined ? {} : { 'istio.io/dry-run': dryRun };
      return security('AuthorizationPolicy', `p${i}`, spec, { annotations }, namespace);
    }),
  );
}

const requestAuthentications = fc
  .array(fc.record({ rules: fc.array(jwtRule, { maxLength: 2 }), selector: selectors }), { maxLength: 2 })
  .map((some) =>
    some.map(({ rules, selector }, i) => security('RequestAuthentication', `r${i}`, { selector, jwtRules: rules })),
  );

const modes = oneOf('PERMISSIVE', 'PERMISSIVE', 'STRICT', 'DISABLE', 'UNSET', 'Strict');

function peerAuthentications(own: readonly number[]): fc.Arbitrary<KubernetesObject[]> {
  const ofPorts = fc.array(fc.tuple(oneOf(...own.map(String)), modes), { maxLength: 2 });
  return fc
    .record({ mesh: rarely(modes, 1), namespace: rarely(modes, 1), workload: rarely(fc.tuple(modes, ofPorts), 1) })
    .map(({ mesh, namespace, workload }) => [
      ...(mesh === undefined
        ? []
        : [security('PeerAuthentication', 'default', { mtls: { mode: mesh } }, {}, 'istio-system')]),
      ...(namespace === undefined ? [] : [security('PeerAuthentication', 'default', { mtls: { mode: namespace } })]),
      ...(workload === undefined
        ? []
        : [
            security('PeerAuthentication', 'server', {
              selector: { matchLabels: { app: 'server' } },
              mtls: { mode: workload[0] },
              portLevelMtls: Object.fromEntries(workload[1].map(([port, mode]) => [port, { mode }])),
            }),
          ]),
    ]);
}

/** What is in force for a workload with these ports, and the requests to it. */
export interface RandomWorld {
  readonly normalization: string;
  readonly aliases: readonly string[];
  readonly policies: readonly KubernetesObject[];
  readonly requests: readonly RandomRequest[];
}

export interface RandomRequest {
  /** Index among the ports of the workload: HTTP, TCP, or whatever the client speaks. */
  readonly port: number;
  /** Index of the identity; undefined: plaintext. */
  readonly peer: number | undefined;
  readonly sourceIp: string;
  readonly sni: string;
  /** On the last port: without HTTP. */
  readonly raw: boolean;
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly headers: readonly (readonly [string, string])[];
}

const header = fc.oneof(
  fc.tuple(fc.constant('x-name'), oneOf('a', 'b', 'ab', 'a,b', 'bb', '')),
  fc.tuple(oneOf('X-Role', 'x_role'), oneOf('admin', 'forged')),
  fc.tuple(
    fc.constant('x-forwarded-for'),
    oneOf('10.1.2.3', '1.2.3.4, 10.1.2.3', '::1', 'unknown', '10.1.2.3,', '127.0.0.2'),
  ),
  fc.tuple(fc.constant('origin'), oneOf('http://a', 'http://b')),
  fc.tuple(fc.constant('User-Agent'), oneOf('a', 'b')),
  fc.tuple(fc.constant('access-control-request-method'), oneOf('GET')),
);

/** Where a token may be. */
const placed = fc
  .tuple(
    token,
    oneOf('bearer', 'bearer', 'bearer', 'x-jwt', 'X-JWT Token', 'token', 'access_token', 'session', 'basic'),
  )
  .map(([text, place]): { readonly header?: readonly [string, string]; readonly query?: string } => {
    switch (place) {
      case 'bearer':
        return { header: ['authorization', `Bearer ${text}`] };
      case 'basic':
        return { header: ['authorization', 'Basic YTpi'] };
      case 'x-jwt':
        return { header: ['x-jwt', text] };
      case 'X-JWT Token':
        return { header: ['x-jwt', `Token ${text}`] };
      case 'session':
        return { header: ['cookie', `a=b; session=${text}`] };
      default:
        return { query: `${place}=${text}` };
    }
  });

const requestPaths = oneOf(
  ...['/', '/admin', '/admin/', '/admin/users', '/a/b', '/a/c/b/d/e', '/Admin', '/x.html', '/admin?x=1', '/?x=/admin'],
  ...['//admin', '/admin//users', '/x/../admin', '/x/%2e%2e/admin', '/%61dmin', '/admin%2Fusers', '/admin%2fusers'],
  ...[
    '/admin\\users',
    '/x/..%2fadmin',
    '/./admin',
    '/admin/.',
    '/admin/..',
    '/../admin',
    '/admin;x=y',
    '/a*b',
    '/%41dmin',
  ],
  ...[
    '/%20',
    '/admin%5Cusers',
    '/admin/users?y=/..',
    '/a/%7e',
    '/a/~',
    '/a/%2E/b',
    '//',
    '/a//',
    '/a/b/..',
    '/%zz',
    '/%C3%A4',
  ],
  ...[
    '/x/a',
    '/x/y/a/z',
    '/admin/a/b/c/users',
    '/a/$&()+,:@=',
    '/a/"',
    '/a/%25',
    '/a|b',
    '/a[b]',
    '/x/[/delete',
    '/x/a]b/delete',
    '/x/<>/delete',
    '/[/]',
    '/x/{*}/delete',
    '/x/%5B/delete',
    '/x/a/b/delete',
    '/x//delete',
    '/a%7Cb',
    '/a/^b',
    '/a%3Fb',
  ],
  ...[
    '/x/..;/admin',
    '/x/..;a/admin',
    '/x/%2e%2e;/admin',
    '/x\\..;a\\admin',
    '/.;a/admin',
    '/x/..;%2fadmin',
    '/admin/..;',
    '/x;/../admin',
  ],
);

const request: fc.Arbitrary<RandomRequest> = fc
  .record({
    port: oneOf(0, 0, 0, 0, 1, 2, 2),
    peer: rarely(fc.integer({ min: 0, max: identities.length - 1 }), 3),
    sourceIp: oneOf('127.0.0.1', '127.0.0.2', '127.0.0.3'),
    sni: oneOf('server.shop', 'other', 'a.b.shop'),
    raw: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
    method: oneOf('GET', 'GET', 'GET', 'POST', 'OPTIONS', 'PURGE'),
    path: requestPaths,
    host: oneOf('server.shop', 'SERVER.SHOP', 'server.shop:80', 'other', 'a.shop'),
    headers: fc.array(header, { maxLength: 3 }),
    tokens: fc.oneof(
      { weight: 3, arbitrary: fc.array(placed, { maxLength: 0 }) },
      fc.array(placed, { minLength: 1, maxLength: 2 }),
    ),
  })
  .map(({ tokens, ...one }) => {
    const query = tokens.flatMap((each) => each.query ?? []).join('&');
    return {
      ...one,
      path: query === '' ? one.path : one.path + (one.path.includes('?') ? '&' : '?') + query,
      headers: [...one.headers, ...tokens.flatMap((each) => (each.header ? [each.header] : []))],
    };
  });

export function randomWorld(own: readonly number[], requests: number): fc.Arbitrary<RandomWorld> {
  return fc
    .record({
      normalization: oneOf('DEFAULT', 'DEFAULT', 'NONE', 'BASE', 'MERGE_SLASHES', 'DECODE_AND_MERGE_SLASHES'),
      aliases: oneOf([], ['old.example']),
      peers: peerAuthentications(own),
      tokens: fc.oneof({ weight: 2, arbitrary: requestAuthentications }, { weight: 1, arbitrary: fc.constant([]) }),
      authorization: authorizationPolicies(own),
      requests: fc.array(request, { minLength: requests, maxLength: requests }),
    })
    .map(({ peers, tokens, authorization, ...world }) => ({
      ...world,
      policies: [...peers, ...tokens, ...authorization],
    }));
}
