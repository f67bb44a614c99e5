import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfig, readMeshSettings } from './config.ts';
import { type Environment, type Origins } from './setting-values.ts';
import { flagOf, settingNames } from './settings.ts';

function file(content: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'fairlead-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'fairlead.yaml');
  writeFileSync(path, content);
  return path;
}

/** Of all addresses that this machine has. */
const every: unknown = expect.stringMatching(/^(::|0\.0\.0\.0)$/);

const read = (flags: Origins['flags'] = {}, env: Environment = {}) => readConfig({ flags, env });

test('without any setting everything has its default', () => {
  expect(read({}, { HOME: '/root', FAIRLEAD_LOG_LEVEL: '' })).toEqual({
    source: { kind: 'kubernetes' },
    healthAddress: { host: every, port: 8080 },
    monitoringAddress: { host: every, port: 15014 },
    mesh: {
      domainSuffix: 'cluster.local',
      rootNamespace: 'istio-system',
      clusterId: 'Kubernetes',
      clusterAliases: {},
      multiclusterServices: false,
      gatewayScope: 'mesh',
      gatewaySecretGrants: false,
      crossNamespaceFiles: false,
      defaultProxyNamespace: 'default',
      defaultProxyType: 'sidecar',
    },
    batch: { quiet: 50, max: 250 },
    streams: { most: 10_000, maxAge: 1_800_000, shutdown: 10_000 },
    secure: {
      address: { host: every, port: 15012 },
      names: ['fairlead.istio-system.svc', 'istiod.istio-system.svc'],
      certificateLifetime: 86_400_000,
    },
    jwksAllowedNetworks: [],
    insecureRemoteClusters: false,
    log: { level: 'info', format: 'text' },
    lease: { name: 'fairlead', namespace: 'kube-system', duration: 15_000 },
    statusWrites: true,
    canaries: true,
  });
});

test('a directory has an authority if it is given one', () => {
  expect(read({ directory: ['a'] }).secure).toBeUndefined();
  expect(read({ directory: ['a'], caDirectory: 'ca', secureNames: 'a.b,c', revision: 'blue' }).secure).toEqual({
    address: { host: '127.0.0.1', port: 15012 },
    names: ['a.b', 'c'],
    certificateLifetime: 86_400_000,
    caDirectory: 'ca',
  });
  expect(read({ revision: 'blue' }).secure?.names).toContain('istiod-blue.istio-system.svc');
});

test('certificates of workloads are valid from an hour to 90 days', () => {
  expect(read({ workloadCertificateLifetime: '72h' }).secure).toMatchObject({ certificateLifetime: 259_200_000 });
  for (const wrong of ['59m', '2161h', '3d'])
    expect(() => read({ workloadCertificateLifetime: wrong }), wrong).toThrow('--workload-certificate-lifetime');
});

test('a directory is served to this machine only, until somebody says otherwise', () => {
  expect(read({ directory: ['a'], healthAddress: ':9', monitoringAddress: '10.0.0.1:9' })).toMatchObject({
    grpcAddress: { host: '127.0.0.1', port: 15010 },
    healthAddress: { host: every, port: 9 },
    monitoringAddress: { host: '10.0.0.1', port: 9 },
  });
  expect(read({}, { FAIRLEAD_DIRECTORY: 'a' }).monitoringAddress).toEqual({ host: '127.0.0.1', port: 15014 });
});

test('clients are believed where somebody asks for it, and those of a directory', () => {
  expect(read().grpcAddress).toBeUndefined();
  expect(read({ grpcAddress: '10.0.0.1:15010' }).grpcAddress).toEqual({ host: '10.0.0.1', port: 15010 });
  expect(read({ directory: ['a'] }).grpcAddress).toEqual({ host: '127.0.0.1', port: 15010 });
  expect(read({ directory: ['a'], config: file('grpcAddress: off') }).grpcAddress).toBeUndefined();
});

test('a flag wins over the environment, that over the file, that over the default', () => {
  const config = file('logLevel: error\nclusterId: file\nrootNamespace: file\nstatusWrites: off\n');
  const { log, mesh, lease, statusWrites } = read(
    { config, logLevel: 'debug' },
    { FAIRLEAD_LOG_LEVEL: 'warn', FAIRLEAD_CLUSTER_ID: 'env' },
  );
  expect(log.level).toBe('debug');
  expect(mesh).toMatchObject({ clusterId: 'env', rootNamespace: 'file', domainSuffix: 'cluster.local' });
  expect(lease.namespace).toBe('kube-system');
  expect(statusWrites).toBe(false);
});

test('the file can be named in the environment', () => {
  expect(read({}, { FAIRLEAD_CONFIG: file('# nothing\nleaseNamespace: other\n') }).lease.namespace).toBe('other');
  expect(read({ config: file('') }).lease.namespace).toBe('kube-system');
});

test('several directories can be given in each way', () => {
  const paths = ['a', 'b'];
  const source = { kind: 'directory', paths };
  expect(read({ directory: paths }).source).toEqual(source);
  expect(read({}, { FAIRLEAD_DIRECTORY: 'a:b:' }).source).toEqual(source);
  expect(read({ config: file('directory: [a, b]') }).source).toEqual(source);
  expect(read({ config: file('directory: a') }).source).toEqual({ kind: 'directory', paths: ['a'] });
});

test('addresses may be a port, a name, IPv4 or IPv6', () => {
  const host = (monitoringAddress: string) => read({ monitoringAddress }).monitoringAddress;
  expect(host(':0')).toEqual({ host: every, port: 0 });
  expect(host('localhost:1')).toEqual({ host: 'localhost', port: 1 });
  expect(host('[::1]:65535')).toEqual({ host: '::1', port: 65535 });
});

test('variables of the Makefile and the tests are not settings', () => {
  expect(read({}, { FAIRLEAD_CACHE: '/elsewhere', FAIRLEAD_SEED: '1', FAIRLEAD_REQUIRE_PEERS: '1' })).toEqual(read());
});

test('the value cannot be changed', () => {
  expect(() => Object.assign(read().mesh, { clusterId: 'x' })).toThrow(TypeError);
});

test('commands without a server read the same settings', () => {
  expect(
    readMeshSettings({ flags: { domainSuffix: 'example.org' }, env: { FAIRLEAD_LOG_LEVEL: 'nonsense' } }),
  ).toMatchObject({
    domainSuffix: 'example.org',
    rootNamespace: 'istio-system',
  });
});

describe('what is wrong is one line that names where it was set', () => {
  test.each<[string, Origins['flags'], Environment, string | RegExp]>([
    ['a flag', { grpcAddress: '15010' }, {}, '--grpc-address: "15010" must be host:port, :port or off'],
    ['a port out of range', { healthAddress: ':99999' }, {}, '--health-address: ":99999" must be host:port or :port'],
    [
      'an alias without a cluster',
      { clusterAliases: 'a' },
      {},
      '--cluster-aliases: "a" must be name=cluster, separated by commas, with each name and each cluster at most once',
    ],
    [
      'two aliases of a cluster',
      { clusterAliases: 'a=c,b=c' },
      {},
      '--cluster-aliases: "a=c,b=c" must be name=cluster, separated by commas, with each name and each cluster at most once',
    ],
    ['an empty flag', { clusterId: '' }, {}, '--cluster-id: "" must be a name without spaces or slashes'],
    [
      'a variable',
      {},
      { FAIRLEAD_LOG_LEVEL: 'loud' },
      'FAIRLEAD_LOG_LEVEL: "loud" must be error or warn or info or debug',
    ],
    ['a batch', { batch: '100ms/10ms' }, {}, /^--batch: "100ms\/10ms" must be <quiet>ms/],
    ['a namespace', { rootNamespace: 'Istio' }, {}, '--root-namespace: "Istio" must be the name of a namespace'],
    ['an unknown variable', {}, { FAIRLEAD_LOG_LEVLE: 'info' }, /^FAIRLEAD_LOG_LEVLE: unknown setting/],
    ['a file that is not there', { config: '/no/such' }, {}, '/no/such: cannot be read: ENOENT'],
    [
      'two sources',
      { directory: ['a'] },
      { FAIRLEAD_KUBECONFIG: 'k' },
      '--directory and FAIRLEAD_KUBECONFIG cannot be combined',
    ],
  ])('%s', (_, flags, env, message) => {
    expect(() => read(flags, env)).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) }),
    );
  });

  test.each([
    ['logLevel: loud', 'logLevel: "loud" must be error or warn or info or debug'],
    ['loglevel: info', 'loglevel: unknown setting; see fairlead serve --help'],
    ['logLevel: [info]', 'logLevel: must be one value'],
    ['directory: [{}]', 'directory: must be a list of strings'],
    ['- a', 'must be a map of settings'],
  ])('%s', (content, message) => {
    const path = file(content);
    expect(() => read({ config: path })).toThrow(`${path}: ${message}`);
  });

  test('a broken file has a line', () => {
    const path = file('logLevel: info\n\tlogFormat: json');
    expect(() => read({ config: path })).toThrow(`${path}:2: is indented with a tab`);
  });
});

test('variables that Kubernetes makes of Services are not settings', () => {
  const env = {
    FAIRLEAD_SERVICE_HOST: '10.0.0.1',
    FAIRLEAD_SERVICE_PORT_GRPC_XDS: '15010',
    FAIRLEAD_PORT: 'tcp://10.0.0.1:15010',
    FAIRLEAD_PORT_15010_TCP_PROTO: 'tcp',
    FAIRLEAD_METRICS_SERVICE_HOST: '10.0.0.2',
  };
  expect(read({}, env)).toEqual(read());
});

test('the help of every setting shows its variable, and its default if it has one', () => {
  for (const name of settingNames)
    expect(flagOf(name).description).toMatch(/\((default: .+; )?env: FAIRLEAD_[A-Z_]+\)$/);
  expect(flagOf('grpcAddress')).toEqual({
    flags: '--grpc-address <address|off>',
    description:
      'where proxies connect without proof of who they are (ADS, plaintext) (default: off; 127.0.0.1:15010 with --directory; env: FAIRLEAD_GRPC_ADDRESS)',
  });
});

test('the API server asks where somebody says so, about what is configured', () => {
  expect(read().webhooks).toBeUndefined();
  expect(read({ webhookAddress: ':15017' }).webhooks).toEqual({
    address: { host: every, port: 15017 },
    configurations: {},
    failClosed: false,
  });
  const all = {
    ...{ webhookAddress: '127.0.0.1:1', injectionDirectory: '/injection', injectionWebhook: 'injector' },
    ...{ validationWebhook: 'validator', validationFailurePolicy: 'fail' },
  };
  expect(read(all).webhooks).toEqual({
    address: { host: '127.0.0.1', port: 1 },
    injectionDirectory: '/injection',
    configurations: { injection: 'injector', validation: 'validator' },
    failClosed: true,
  });
  expect(() => read({ ...all, directory: ['a'] })).toThrow('--webhook-address and --directory cannot be combined');
  expect(() => read({ injectionWebhook: 'a b', webhookAddress: ':1' })).toThrow('must be the name of an object');
});

describe('a ClusterMesh', () => {
  const own = { clustermeshName: 'home', clustermeshId: '7' };
  const unusable = (flags: Origins['flags']): string => {
    try {
      read(flags);
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };

  test('is read, written, or both', () => {
    expect(read(own).clusterMesh).toBeUndefined();
    expect(read({ ...own, clustermeshConfig: '/mesh' }).clusterMesh).toEqual({
      own: { name: 'home', id: 7, limit: 255 },
      directory: '/mesh',
      importsServices: false,
    });
    const large = { clustermeshId: '300', clustermeshMaxConnectedClusters: '511', clustermeshImport: 'all' };
    expect(read({ ...own, ...large, clustermeshExport: '/export' }).clusterMesh).toEqual({
      own: { name: 'home', id: 300, limit: 511 },
      importsServices: true,
      exportFile: '/export',
    });
  });

  test.each<[Origins['flags'], string]>([
    [{ clustermeshConfig: 'a' }, '--clustermesh-config requires --clustermesh-name and --clustermesh-id'],
    [
      { clustermeshExport: 'a', clustermeshName: 'home' },
      '--clustermesh-export requires --clustermesh-name and --clustermesh-id',
    ],
    [
      { ...own, clustermeshName: 'default', clustermeshConfig: 'a' },
      '--clustermesh-name: "default" must be at most 32 lower-case letters, digits and dashes, and not "default"',
    ],
    [{ ...own, clustermeshId: '256', clustermeshConfig: 'a' }, '--clustermesh-id: cluster id 256 is not from 1 to 255'],
    [
      { ...own, clustermeshMaxConnectedClusters: '300', clustermeshConfig: 'a' },
      '--clustermesh-max-connected-clusters: "300" must be 255 or 511',
    ],
    [{ ...own, clustermeshExport: 'a', directory: ['b'] }, '--clustermesh-export and --directory cannot be combined'],
    [{ ...own, clustermeshExport: 'a', statusWrites: 'off' }, '--clustermesh-export needs --status-writes on'],
  ])('%j is refused', (flags, message) => {
    expect(unusable(flags)).toBe(message);
  });
});
