import { describe, expect, test } from 'vitest';
import { type KubeconfigRules, LONGEST_KUBECONFIG, readKubeconfig } from './kubeconfig.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const CA = base64('-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n');
const KEY = base64('-----BEGIN EC PRIVATE KEY-----\nMII\n-----END EC PRIVATE KEY-----\n');

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly rest?: object;
}

function kubeconfig({ cluster = {}, user = { token: 't' }, rest = {} }: Parts = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://api.east:6443/', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
    ...rest,
  });
}

/** Without the name of the cluster, which tells files apart. */
function read(text: string, rules: KubeconfigRules): object {
  const { name: _, ...rest } = readKubeconfig(text, rules);
  return rest;
}

const strict = { allowInsecure: false };
const lax = { allowInsecure: true };

describe('what is taken', () => {
  test('is what istioctl writes, and nothing besides', () => {
    const text = `
apiVersion: v1
kind: Config
clusters:
- cluster: {certificate-authority-data: ${CA}, server: "https://api.east:6443", disable-compression: true}
  name: east
contexts:
- context: {cluster: east, user: east}
  name: east
current-context: east
preferences: {}
users:
- name: east
  user: {token: secret, invented-later: run me}
`;
    expect(readKubeconfig(text, strict)).toEqual({
      access: { server: 'https://api.east:6443', insecure: false, certificateAuthority: CA, token: 'secret' },
      name: 'east',
    });
  });

  test.each<[string, Parts, object]>([
    [
      'a client certificate',
      { user: { 'client-certificate-data': CA, 'client-key-data': KEY } },
      { clientCertificate: { certificate: CA, key: KEY } },
    ],
    [
      'a name and a password',
      { user: { username: 'me', password: 'p' } },
      { login: { username: 'me', password: 'p' } },
    ],
    [
      'a TLS server name',
      { cluster: { 'tls-server-name': 'kubernetes' } },
      { tlsServerName: 'kubernetes', token: 't' },
    ],
    [
      'a path in the URL',
      { cluster: { server: 'https://rancher/k8s/c-1/' } },
      { server: 'https://rancher/k8s/c-1', token: 't' },
    ],
    ['empty fields as if absent', { user: { token: 't', exec: null, tokenFile: '' } }, { token: 't' }],
  ])('includes %s', (_, parts, access) => {
    expect(read(kubeconfig(parts), strict)).toEqual({
      access: { server: 'https://api.east:6443', insecure: false, ...access },
    });
  });

  test('is of the current context, whatever else there is', () => {
    const rest = {
      clusters: [
        { name: 'a', cluster: { server: 'https://a', 'insecure-skip-tls-verify': true } },
        { name: 'b', cluster: { server: 'https://b' } },
      ],
      users: [
        { name: 'a', user: { exec: { command: 'rm' } } },
        { name: 'b', user: { token: 'b' } },
      ],
      contexts: [
        { name: 'a', context: { cluster: 'a', user: 'a' } },
        { name: 'b', context: { cluster: 'b', user: 'b' } },
      ],
      'current-context': 'b',
    };
    expect(read(kubeconfig({ rest }), strict)).toEqual({
      access: { server: 'https://b', insecure: false, token: 'b' },
    });
  });

  test('includes insecure servers where they are allowed', () => {
    const skip = kubeconfig({ cluster: { 'insecure-skip-tls-verify': true } });
    expect(read(skip, lax)).toMatchObject({ access: { insecure: true } });
    expect(read(kubeconfig({ cluster: { server: 'http://x' } }), lax)).toMatchObject({
      access: { server: 'http://x', insecure: true },
    });
  });
});

describe('what is refused', () => {
  const user = 'users[0].user';
  const cluster = 'clusters[0].cluster';
  const file = '/etc/passwd';
  test.each<[string, string, string, RegExp]>([
    [
      'a program',
      kubeconfig({ user: { exec: { command: 'sh' } } }),
      `${user}.exec`,
      /would run a program; use a token/,
    ],
    [
      'an auth-provider',
      kubeconfig({ user: { 'auth-provider': { name: 'oidc' } } }),
      `${user}.auth-provider`,
      /not supp/,
    ],
    ['a token file', kubeconfig({ user: { tokenFile: file } }), `${user}.tokenFile`, /use token/],
    ['a certificate file', kubeconfig({ user: { 'client-certificate': file } }), `${user}.client-certificate`, /-data/],
    ['a key file', kubeconfig({ user: { 'client-key': file } }), `${user}.client-key`, /-data/],
    [
      'a CA file',
      kubeconfig({ cluster: { 'certificate-authority': file } }),
      `${cluster}.certificate-authority`,
      /-data/,
    ],
    ['impersonation', kubeconfig({ user: { token: 't', as: 'admin' } }), `${user}.as`, /not supported/],
    ['a proxy', kubeconfig({ cluster: { 'proxy-url': 'http://p' } }), `${cluster}.proxy-url`, /without a proxy/],
    [
      'an unverified server',
      kubeconfig({ cluster: { 'insecure-skip-tls-verify': true } }),
      `${cluster}.insecure-skip-tls-verify`,
      /certificate-authority-data/,
    ],
    ['a server without TLS', kubeconfig({ cluster: { server: 'http://x' } }), `${cluster}.server`, /use https/],
    ['another URL', kubeconfig({ cluster: { server: 'file:///x' } }), `${cluster}.server`, /not a URL that begins/],
    ['no URL', kubeconfig({ cluster: { server: null } }), `${cluster}.server`, /is not set/],
    ['a login in the URL', kubeconfig({ cluster: { server: 'https://a:b@x' } }), `${cluster}.server`, /more than host/],
    [
      'a CA that is not Base64',
      kubeconfig({ cluster: { 'certificate-authority-data': '-' } }),
      `${cluster}.certificate-authority-data`,
      /Base64/,
    ],
    [
      'a CA that is not PEM',
      kubeconfig({ cluster: { 'certificate-authority-data': 'AAAA' } }),
      `${cluster}.certificate-authority-data`,
      /PEM/,
    ],
    [
      'a certificate without key',
      kubeconfig({ user: { 'client-certificate-data': CA } }),
      `${user}.client-key-data`,
      /not set/,
    ],
    [
      'a key without certificate',
      kubeconfig({ user: { 'client-key-data': KEY } }),
      `${user}.client-certificate-data`,
      /not set/,
    ],
    ['a password alone', kubeconfig({ user: { password: 'p' } }), `${user}.username`, /not set/],
    ['a number as token', kubeconfig({ user: { token: 7 } }), `${user}.token`, /must be a string/],
    [
      'a token of two lines',
      kubeconfig({ user: { token: 'a\r\nX-Remote-User: admin' } }),
      `${user}.token`,
      /character/,
    ],
    ['no current context', kubeconfig({ rest: { 'current-context': '' } }), 'current-context', /is not set/],
    ['a missing context', kubeconfig({ rest: { 'current-context': 'y' } }), 'current-context', /names "y"/],
    ['a missing user', kubeconfig({ rest: { users: [] } }), 'contexts[0].context.user', /not in users/],
    ['a missing cluster', kubeconfig({ rest: { clusters: [] } }), 'contexts[0].context.cluster', /not in clusters/],
    ['no list', kubeconfig({ rest: { contexts: 7 } }), 'contexts', /not a list/],
    ['another document', 'just text', '', /not a kubeconfig/],
    ['something that is not YAML', '{ a: [', '', /not valid YAML: see line 1/],
    ['too much', ' '.repeat(LONGEST_KUBECONFIG + 1), '', /longer than 262144 bytes/],
  ])('is %s', (_, text, field, message) => {
    expect(read(text, strict)).toEqual({
      refused: { field, message: expect.stringMatching(message) as string },
    });
  });

  test('never shows what may be a credential', () => {
    const refused = JSON.stringify([
      readKubeconfig('users: [{user: {token: hunter2', strict),
      readKubeconfig(kubeconfig({ user: { token: 'hunter2\n7' } }), strict),
      readKubeconfig(kubeconfig({ user: { password: 'hunter2' } }), strict),
      readKubeconfig(kubeconfig({ cluster: { server: 'https://me:hunter2@x' } }), strict),
    ]);
    expect(refused).not.toContain('hunter2');
  });
});
