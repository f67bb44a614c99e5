import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PooledKubeConfig } from './credentials.ts';
import { KubeConfigError, readKubeConfig, type KubeConfigOptions } from './kube-config.ts';

const { signal } = new AbortController();
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'fairlead-kube-config-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(name: string, content: unknown): string {
  const file = join(directory, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

function content(server: string, { user = {}, cluster = {} as object, ...rest }: Record<string, object | string> = {}) {
  return {
    clusters: [{ name: 'c', cluster: { server, ...(cluster as object) } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
    ...rest,
  };
}

function serverOf(options: KubeConfigOptions): string | undefined {
  return readKubeConfig({
    env: { HOME: directory },
    serviceAccount: join(directory, 'none'),
    ...options,
  }).getCurrentCluster()?.server;
}

describe('the configuration comes from', () => {
  test('the flag, then KUBECONFIG, then the ServiceAccount, then the home directory', () => {
    const flag = write('flag', content('https://flag'));
    const KUBECONFIG = write('env', content('https://env'));
    mkdirSync(join(directory, '.kube'));
    write('.kube/config', content('https://home'));
    write('token', 'secret');
    write('ca.crt', 'x');
    const pod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const HOME = directory;
    expect(serverOf({ path: flag, env: { KUBECONFIG, HOME } })).toBe('https://flag');
    expect(serverOf({ env: { KUBECONFIG, HOME, ...pod }, serviceAccount: directory })).toBe('https://env');
    expect(serverOf({ env: { HOME, ...pod }, serviceAccount: directory })).toBe('https://10.96.0.1:443');
    expect(serverOf({ env: { HOME } })).toBe('https://home');
  });

  test('several files of KUBECONFIG, where the first one wins and missing ones do not matter', () => {
    const first = write('a', { ...content('https://a'), 'current-context': '' });
    const second = write('b', content('https://b'));
    const KUBECONFIG = [join(directory, 'missing'), first, second].join(delimiter);
    expect(serverOf({ env: { KUBECONFIG } })).toBe('https://a');
  });

  test('a context that the flag names', () => {
    const clusters = [
      { name: 'c', cluster: { server: 'https://c' } },
      { name: 'd', cluster: { server: 'https://d' } },
    ];
    const contexts = [
      { name: 'x', context: { cluster: 'c', user: 'u' } },
      { name: 'y', context: { cluster: 'd', user: 'u' } },
    ];
    const path = write('k', { ...content('https://x'), clusters, contexts });
    expect(serverOf({ path })).toBe('https://c');
    expect(serverOf({ path, context: 'y' })).toBe('https://d');
    expect(() => serverOf({ path, context: 'z' })).toThrow('context z does not exist');
  });

  test('the environment, for a proxy that the kubeconfig does not name', () => {
    const proxyOf = (cluster: object, env: Record<string, string>): string | undefined =>
      readKubeConfig({ path: write('k', content('https://x.com', { cluster })), env }).getCurrentCluster()?.proxyUrl;
    expect(proxyOf({}, {})).toBeUndefined();
    expect(proxyOf({}, { HTTPS_PROXY: 'http://env' })).toBe('http://env');
    expect(proxyOf({}, { HTTPS_PROXY: 'http://env', NO_PROXY: 'x.com' })).toBeUndefined();
    expect(proxyOf({ 'proxy-url': 'socks5://own' }, { HTTPS_PROXY: 'http://env' })).toBe('socks5://own');
  });

  test('an IPv6 address of the API server', () => {
    write('token', 'secret');
    write('ca.crt', 'x');
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    expect(serverOf({ env, serviceAccount: directory })).toBe('https://[fd00::1]:443');
  });
});

describe('what cannot be used is one line', () => {
  test.each<[string, () => KubeConfigOptions, RegExp]>([
    ['a missing file', () => ({ path: join(directory, 'nope') }), /kubeconfig .*nope: ENOENT/],
    ['no YAML', () => ({ path: write('k', '{ a: [') }), /kubeconfig .*\/k: /],
    ['another YAML', () => ({ path: write('k', 'just text') }), /not a kubeconfig/],
    ['no context', () => ({ path: write('k', content('https://x', { 'current-context': '' })) }), /current-context/],
    [
      'a context that is not there',
      () => ({ path: write('k', content('https://x', { 'current-context': 'y' })) }),
      /context y/,
    ],
    ['no URL', () => ({ path: write('k', content('not a url')) }), /server of cluster c is not a URL: not a url/],
    [
      'a CA that is not there',
      () => ({ path: write('k', content('https://x', { cluster: { 'certificate-authority': 'ca.pem' } })) }),
      /ca\.pem cannot be read/,
    ],
    [
      'a token that is not there',
      () => ({ path: write('k', content('https://x', { user: { tokenFile: 't' } })) }),
      /\/t cannot be read/,
    ],
    [
      'KUBECONFIG without files',
      () => ({ env: { KUBECONFIG: `/none/a${delimiter}/none/b` } }),
      /no file of KUBECONFIG/,
    ],
    [
      'groups to be taken for, without a user',
      () => ({ path: write('k', content('https://x', { user: { 'as-groups': ['g'] } })) }),
      /user u has as-uid, as-groups or as-user-extra without as/,
    ],
    [
      'a provider whose program would be waited for without end',
      () => ({ path: write('k', content('https://x', { user: { 'auth-provider': { name: 'gcp' } } })) }),
      /auth-provider gcp, which kubectl no longer supports; use exec/,
    ],
    [
      'a plugin that wants to ask',
      () => ({
        path: write('k', content('https://x', { user: { exec: { command: 'c', interactiveMode: 'Always' } } })),
      }),
      /interactiveMode Always, which needs a terminal/,
    ],
    [
      'a plugin without a command',
      () => ({ path: write('k', content('https://x', { user: { exec: {} } })) }),
      /exec without a command/,
    ],
    [
      'a proxy that is not a URL',
      () => ({ path: write('k', content('https://x', { cluster: { 'proxy-url': 'ftp://p' } })) }),
      /proxy-url of cluster c is not/,
    ],
    [
      'a proxy of the environment that is none',
      () => ({ path: write('k', content('https://x')), env: { HTTPS_PROXY: 'ftp://p' } }),
      /HTTPS_PROXY is not the URL of an HTTP or SOCKS proxy/,
    ],
    ['nothing at all', () => ({ env: { HOME: directory } }), /no Kubernetes configuration/],
  ])('%s', (_, options, message) => {
    let error: unknown;
    try {
      serverOf(options());
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(KubeConfigError);
    expect(error).toMatchObject({ code: 'KUBECONFIG', message: expect.stringMatching(message) });
    expect((error as Error).message).not.toContain('\n');
  });
});

describe('credentials', () => {
  test('come from a token file, and anew after they were refused', async () => {
    const path = write('k', content('https://x', { user: { tokenFile: 'token' } }));
    write('token', 'one\n');
    const config = new PooledKubeConfig(() => readKubeConfig({ path }));
    const first = await config.credentials({ signal });
    expect(first.headers).toEqual({ Authorization: 'Bearer one' });
    write('token', 'two\n');
    config.refresh(first);
    expect((await config.credentials({ signal })).headers).toEqual({ Authorization: 'Bearer two' });
  });

  test('of a certificate that was rotated make a new pool, and nothing else does', async () => {
    const path = write('k', content('https://x', { cluster: { 'certificate-authority': 'ca.pem' } }));
    write('ca.pem', 'one');
    const config = new PooledKubeConfig(() => readKubeConfig({ path }));
    const first = (await config.credentials({ signal })).dispatcher;
    expect((await config.credentials({ signal })).dispatcher).toBe(first);
    write('ca.pem', 'two');
    expect((await config.credentials({ signal })).dispatcher).not.toBe(first);
    await config.close();
  });

  test('come from a plugin, beside the kubeconfig, and anew after they were refused', async () => {
    const path = write('k', content('https://x', { user: { exec: { command: './plugin' } } }));
    write('plugin', `#!/bin/sh\nprintf '{"status":{"token":"%s"}}' "$(cat ${directory}/token)"`);
    chmodSync(join(directory, 'plugin'), 0o700);
    write('token', 'one');
    const config = new PooledKubeConfig(() => readKubeConfig({ path }));
    const first = await config.credentials({ signal });
    expect(first.headers).toEqual({ Authorization: 'Bearer one' });
    write('token', 'two');
    expect((await config.credentials({ signal })).headers).toEqual({ Authorization: 'Bearer one' });
    config.refresh(first);
    expect((await config.credentials({ signal })).headers).toEqual({ Authorization: 'Bearer two' });
    await config.close();
  });

  test("are taken for another user's, with uid, groups and extra fields", async () => {
    const user = { token: 't', as: 'jane', 'as-uid': '7', 'as-groups': ['dev', 'ops'] };
    const path = write(
      'k',
      content('https://x', { user: { ...user, 'as-user-extra': { 'acme.com/team': ['mesh'] } } }),
    );
    const config = new PooledKubeConfig(() => readKubeConfig({ path }));
    expect((await config.credentials({ signal })).headers).toEqual({
      Authorization: 'Bearer t',
      'Impersonate-User': 'jane',
      'Impersonate-Uid': '7',
      'Impersonate-Group': ['dev', 'ops'],
      'Impersonate-Extra-acme.com%2Fteam': ['mesh'],
    });
    await config.close();
  });

  test('are not needed: a context without user works, also over plain HTTP', async () => {
    const path = write('k', {
      ...content('http://127.0.0.1:8001'),
      users: [],
      contexts: [{ name: 'x', context: { cluster: 'c' } }],
    });
    const config = new PooledKubeConfig(() => readKubeConfig({ path }));
    expect(await config.credentials({ signal })).toMatchObject({ server: 'http://127.0.0.1:8001', headers: {} });
    await config.close();
  });
});
