import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import type { Config } from '../config/config.ts';
import { settingNames } from '../config/settings.ts';
import { runCli } from './cli.ts';
import type {
  AccessAnswer,
  AccessQuestion,
  CheckRequest,
  CheckResult,
  Finding,
  Program,
  StatusRequest,
  TranslateRequest,
  Translation,
} from './program.ts';

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A command line, run with a program that does what the test says. */
async function run(argv: readonly string[], program: Partial<Program> = {}, env = {}): Promise<Outcome> {
  let [out, err] = ['', ''];
  const unexpected = () => Promise.reject(new Error('not expected to be called'));
  const code = await runCli(argv, {
    program: () =>
      Promise.resolve({
        serve: unexpected,
        check: unexpected,
        translate: unexpected,
        identity: unexpected,
        release: unexpected,
        explainAccess: unexpected,
        status: unexpected,
        clusters: unexpected,
        identities: unexpected,
        record: unexpected,
        replay: unexpected,
        ...program,
      }),
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env,
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

function file(content: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'fairlead-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'node.json');
  writeFileSync(path, content);
  return path;
}

const object = { kind: 'VirtualService', namespace: 'shop', name: 'reviews' };
const missing: Finding = {
  severity: 'error',
  file: 'mesh/a.yaml',
  line: 7,
  object,
  field: 'spec.http[0].route[0].destination.host',
  reason: 'RefNotFound',
  message: 'no service ratings in namespace shop; create it or correct the host.',
};
const warning: Finding = {
  ...missing,
  severity: 'warning',
  field: 'spec.hots',
  message: 'is not a known field.',
  reason: 'Unreadable',
};
const broken: Finding = {
  severity: 'error',
  file: 'mesh/b.yaml',
  line: 2,
  field: '',
  reason: 'Unreadable',
  message: 'is not valid YAML: x',
};

test('identity says when nothing is published', async () => {
  const { code, out, err } = await run(['identity', '--root-namespace', 'mesh'], {
    identity: () => Promise.resolve(undefined),
  });
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(/^error: ConfigMap mesh\/istio-ca-root-cert does not have the state of a rotation/);
});

describe('release', () => {
  test('names a Service of a cluster', async () => {
    let asked: unknown;
    const outcome = await run(['release', 'shop/reviews', '--context', 'c'], {
      release: (...given) => ((asked = given.slice(0, 2)), Promise.resolve()),
    });
    expect(outcome).toEqual({
      code: 0,
      out: 'Service shop/reviews: what was held until now is released\n',
      err: '',
    });
    expect(asked).toMatchObject([
      { source: { kind: 'kubernetes', context: 'c' } },
      { namespace: 'shop', name: 'reviews' },
    ]);
  });

  test.each(['reviews', 'shop/', '/reviews', 'a/b/c'])('%s is not one', async (text) => {
    const { code, err } = await run(['release', text]);
    expect([code, err]).toEqual([1, `error: "${text}" is not a Service; use NAMESPACE/SERVICE\n`]);
  });
});

test('status asks the addresses that it is given, and otherwise all replicas in the cluster', async () => {
  const requests: StatusRequest[] = [];
  const program = { status: (request: StatusRequest) => (requests.push(request), Promise.resolve([])) };
  await run(['status', 'a.shop', '--address', 'localhost:1', '--address', 'localhost:2'], program);
  const { code } = await run(['status', '--context', 'test', '--root-namespace', 'mesh'], program);
  expect(code).toBe(0);
  expect(requests).toEqual([
    { from: { addresses: ['localhost:1', 'localhost:2'] }, proxy: 'a.shop' },
    { from: { source: { kind: 'kubernetes', context: 'test' }, rootNamespace: 'mesh' } },
  ]);
});

describe('check', () => {
  const check = (findings: readonly Finding[], ...args: string[]): Promise<Outcome & { request: CheckRequest }> => {
    let request!: CheckRequest;
    const result: CheckResult = { findings, objects: 3, ignored: 1 };
    const program = { check: (given: CheckRequest) => ((request = given), Promise.resolve(result)) };
    return run(['check', ...args], program).then((outcome) => ({ ...outcome, request }));
  };

  test('prints a line for each problem and ends with 1 where there are errors', async () => {
    const { code, out, err } = await check([missing, warning, broken], 'mesh');
    expect(out).toBe(
      [
        'mesh/a.yaml:7: VirtualService/shop/reviews: spec.http[0].route[0].destination.host: no service ratings in namespace shop; create it or correct the host.\n',
        'mesh/a.yaml:7: VirtualService/shop/reviews: spec.hots: warning: is not a known field.\n',
        'mesh/b.yaml:2: is not valid YAML: x\n',
      ].join(''),
    );
    expect(err).toBe('3 objects (1 of other kinds ignored): 2 errors, 1 warning\n');
    expect(code).toBe(1);
  });

  test('ends with 0 where there are warnings only', async () => {
    expect(await check([warning], 'mesh')).toMatchObject({ code: 0 });
  });

  test('hands over paths, completeness and settings of the mesh', async () => {
    const { request } = await check([], 'a', 'b', '--complete', '--root-namespace', 'root');
    expect(request).toMatchObject({ paths: ['a', 'b'], complete: true, mesh: { rootNamespace: 'root' } });
    expect((await check([], 'a')).request.complete).toBe(false);
  });

  test('prints JSON for programs', async () => {
    const { out, err, code } = await check([missing], 'mesh', '-o', 'json');
    expect(JSON.parse(out)).toEqual({
      objects: 3,
      ignored: 1,
      errors: 1,
      warnings: 0,
      findings: [
        {
          severity: 'error',
          file: 'mesh/a.yaml',
          line: 7,
          ...object,
          field: missing.field,
          reason: 'RefNotFound',
          message: missing.message,
        },
      ],
    });
    expect([err, code]).toEqual(['', 1]);
  });

  test('what files hold cannot move the cursor or make lines of its own', async () => {
    const { out } = await check([{ ...broken, message: 'a\u001b[2J\nb.yaml:1: \u202ex \ud800' }], 'mesh');
    expect(out).toBe('mesh/b.yaml:2: a\\u{1b}[2J\\u{a}b.yaml:1: \\u{202e}x \ufffd\n');
  });
});

describe('translate', () => {
  const cluster = { '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster', name: 'outbound|80||a' };
  const assignment = {
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    clusterName: 'outbound|80||a',
  };
  const table = { '@type': 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration', name: '80' };
  const resources = { cds: [cluster], eds: [assignment], lds: [], rds: [table], sds: [] };
  const translate = (
    args: readonly string[],
    given: Partial<Translation> = {},
  ): Promise<Outcome & { request: TranslateRequest }> => {
    let request!: TranslateRequest;
    const program = {
      translate: (wanted: TranslateRequest) => (
        (request = wanted),
        Promise.resolve({ resources, findings: [], ...given })
      ),
    };
    return run(['translate', ...args], program).then((outcome) => ({ ...outcome, request }));
  };

  test('prints one document of all types', async () => {
    const yaml = await translate(['mesh', '--proxy', 'envoy']);
    expect(parse(yaml.out)).toEqual(resources);
    expect(yaml).toMatchObject({ code: 0, err: '' });
    const json = await translate(['mesh', '--proxy', 'envoy', '-o', 'json']);
    expect(JSON.parse(json.out)).toEqual(resources);
  });

  test('prints only the type and the name that are asked for', async () => {
    expect(parse((await translate(['mesh', '--proxy', 'e', '--type', 'rds'])).out)).toEqual({ rds: [table] });
    expect(parse((await translate(['mesh', '--proxy', 'e', '--name', 'outbound|80||a'])).out)).toEqual({
      cds: [cluster],
      eds: [assignment],
      lds: [],
      rds: [],
      sds: [],
    });
    expect(await translate(['mesh', '--proxy', 'e', '--type', 'cds', '--name', 'x'])).toMatchObject({
      code: 1,
      err: 'the proxy gets no resource named x\n',
    });
  });

  test.each([
    [[], 0],
    [['--strict'], 1],
  ])('tells on standard error what it had to leave out; with %j it ends with %i', async (flags, expected) => {
    const { code, err, out } = await translate(['mesh', '--proxy', 'e', ...flags], { findings: [broken, warning] });
    expect(err.split('\n')[0]).toBe('mesh/b.yaml:2: is not valid YAML: x');
    expect(code).toBe(expected);
    expect(parse(out)).toEqual(resources);
  });

  test('warnings are not errors, however strict it is', async () => {
    expect(await translate(['mesh', '--proxy', 'e', '--strict'], { findings: [warning] })).toMatchObject({ code: 0 });
  });

  test('a proxy that would be refused is a failure, one that is given nothing is told why', async () => {
    const nothing = { cds: [], eds: [], lds: [], rds: [], sds: [] };
    expect(await translate(['mesh', '--proxy', 'e'], { resources: nothing, refusal: 'no' })).toMatchObject({
      code: 1,
      err: 'no\n',
    });
    expect(await translate(['mesh', '--proxy', 'e'], { resources: nothing, remark: 'none' })).toMatchObject({
      code: 0,
      err: 'none\n',
    });
  });

  test('takes labels beside an id, and before those of a node', async () => {
    const labels = ['--labels', 'app=gateway,istio=ingress,empty='];
    const { request } = await translate(['mesh', '--proxy', 'e', ...labels]);
    expect(request.proxy.metadata).toEqual({ LABELS: { app: 'gateway', istio: 'ingress', empty: '' } });
    const node = file('{"id": "n", "metadata": {"NAMESPACE": "a", "LABELS": {"app": "x", "b": "c"}}}');
    const { request: other } = await translate(['mesh', '--node', node, '--labels', 'app=gateway']);
    expect(other.proxy.metadata).toEqual({ NAMESPACE: 'a', LABELS: { app: 'gateway', b: 'c' } });
  });

  test('takes a proxy by its id', async () => {
    const { request } = await translate(['mesh', '--proxy', 'router~10.0.0.1~gw.ns~ns.svc.cluster.local']);
    expect(request.proxy).toEqual({
      nodeId: 'router~10.0.0.1~gw.ns~ns.svc.cluster.local',
      nodeCluster: '',
      metadata: {},
      locality: { region: '', zone: '', subZone: '' },
      build: '',
      extensions: [],
    });
  });

  test.each([
    [
      'JSON',
      `{"id": "n", "cluster": "c", "metadata": {"NAMESPACE": "shop", "LABELS": {"app": "a"}}, "locality": {"region": "r", "sub_zone": "s"},
        "user_agent_name": "envoy", "user_agent_build_version": {"version": {"major_number": 1, "minor_number": 40}},
        "extensions": [{"name": "envoy.filters.http.router"}, {"name": "istio.stats"}]}`,
    ],
    [
      'YAML with the other spelling',
      `id: "n"\ncluster: c\nmetadata: {NAMESPACE: shop, LABELS: {app: a}}\nlocality: {region: r, subZone: s}
userAgentName: envoy\nuserAgentBuildVersion: {version: {majorNumber: 1, minorNumber: 40}}\nextensions: [{name: envoy.filters.http.router}, {name: istio.stats}]`,
    ],
  ])('takes a node in %s', async (_, content) => {
    const { request } = await translate(['mesh', '--node', file(content)]);
    expect(request.proxy).toEqual({
      nodeId: 'n',
      nodeCluster: 'c',
      metadata: { NAMESPACE: 'shop', LABELS: { app: 'a' } },
      locality: { region: 'r', zone: '', subZone: 's' },
      build: 'envoy 1.40.0',
      extensions: ['istio.stats'],
    });
  });

  test.each([
    ['{}', ': id: is missing'],
    ['[]', ': the node: must be an object'],
    ['id: 7', ': id: must be a string'],
    ['id: [', ':1: is not valid YAML: '],
    ['{"id": "a", "extensions": [1]}', ': extensions: must be an object'],
  ])('refuses a node that is none: %s', async (content, message) => {
    const path = file(content);
    const { code, err } = await run(['translate', 'mesh', '--node', path]);
    expect(code).toBe(1);
    expect(err.startsWith(`error: --node ${path}${message}`)).toBe(true);
    expect(err.trimEnd()).not.toContain('\n');
  });
});

describe('serve', () => {
  test('runs the program with its config until it ends', async () => {
    let config!: Config;
    const serve = (given: Config) => ((config = given), Promise.resolve());
    const argv = ['serve', '--directory', 'a', 'b', '--grpc-address', ':0', '--log-format', 'json'];
    expect(await run(argv, { serve }, { FAIRLEAD_BATCH: '5ms/50ms' })).toEqual({ code: 0, out: '', err: '' });
    expect(config).toMatchObject({
      source: { kind: 'directory', paths: ['a', 'b'] },
      grpcAddress: { port: 0 },
      log: { format: 'json' },
      batch: { quiet: 5, max: 50 },
    });
  });

  test('its help shows every flag, variable and default', async () => {
    const { out, code } = await run(['serve', '--help']);
    expect(code).toBe(0);
    const text = out.replace(/\s+/g, ' ');
    for (const name of settingNames) expect(text).toContain(`FAIRLEAD_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`);
    for (const shown of [':15010', ':8080', ':15014', 'cluster.local', 'istio-system', '50ms/250ms', 'FAIRLEAD_CONFIG'])
      expect(text).toContain(shown);
  });
});

describe('a mistake is one line on standard error, and exit code 1', () => {
  const withCode = (code: string, message: string): Partial<Program> => ({
    serve: () => Promise.reject(Object.assign(new Error(message), { code })),
  });
  test.each<[string, string[], Partial<Program>, string]>([
    [
      'an unknown flag',
      ['serve', '--grpc-adress', ':1'],
      {},
      "error: unknown option '--grpc-adress' (Did you mean --grpc-address?)",
    ],
    ['an unknown command', ['serv'], {}, "error: unknown command 'serv' (Did you mean serve?)"],
    [
      'an argument too many',
      ['serve', 'x'],
      {},
      "error: too many arguments for 'serve'. Expected 0 arguments but got 1: x.",
    ],
    ['no path', ['check'], {}, "error: missing required argument 'path'"],
    ['no proxy', ['translate', 'x'], {}, 'error: specify --proxy ID or --node FILE'],
    [
      'two proxies',
      ['translate', 'x', '--proxy', 'a', '--node', 'b'],
      {},
      "error: option '--proxy <id>' cannot be used with option '--node <file>'",
    ],
    [
      'labels that are none',
      ['translate', 'x', '--proxy', 'a', '--labels', 'app=x,istio'],
      {},
      'error: --labels: "istio" must be key=value',
    ],
    ['no such node file', ['translate', 'x', '--node', '/no'], {}, 'error: --node /no: cannot be read: ENOENT'],
    [
      'an unknown type',
      ['translate', 'x', '--proxy', 'a', '--type', 'xds'],
      {},
      "error: option '--type <type>' argument 'xds' is invalid. Allowed choices are cds, eds, lds, rds, sds.",
    ],
    ['a setting', ['serve', '--log-level', 'x'], {}, 'error: --log-level: "x" must be error or warn or info or debug'],
    [
      'a port in use',
      ['serve'],
      withCode('LISTEN', 'health: cannot listen on :1'),
      'error: health: cannot listen on :1',
    ],
    ['an unreadable kubeconfig', ['serve'], withCode('KUBECONFIG', 'kubeconfig x: no'), 'error: kubeconfig x: no'],
    [
      'no such directory',
      ['serve'],
      withCode('DIRECTORY', 'x: no such file or directory'),
      'error: x: no such file or directory',
    ],
  ])('%s', async (_, argv, program, line) => {
    expect(await run(argv, program)).toEqual({ code: 1, out: '', err: `${line}\n` });
  });

  test('a bug shows its stack', async () => {
    const { code, err } = await run(['serve'], withCode('EOTHER', 'oops'));
    expect(code).toBe(1);
    expect(err).toMatch(/^Error: oops\n {4}at /);
  });

  test('no command prints the help', async () => {
    const { code, err } = await run([]);
    expect(code).toBe(1);
    for (const command of ['serve', 'check', 'translate', 'version']) expect(err).toContain(command);
  });
});

test.each(['version', '--version', '-V'])('%s prints the version without the program being loaded', async (word) => {
  const { out, code } = await run([word]);
  expect(out).toMatch(/^fairlead \d+\.\d+\.\d+ \(Node \d+\.\d+\.\d+\)\n$/);
  expect(code).toBe(0);
});

describe('explain access', () => {
  const ask = (answer: Partial<AccessAnswer>, ...args: string[]): Promise<Outcome & { question: AccessQuestion }> => {
    let question!: AccessQuestion;
    const whole: AccessAnswer = { verdict: 'allowed', reason: 'so', by: [], remarks: [], findings: [], ...answer };
    const program = { explainAccess: (given: AccessQuestion) => ((question = given), Promise.resolve(whole)) };
    return run(['explain', 'access', ...args], program).then((outcome) => ({ ...outcome, question }));
  };
  const to = ['--to', 'shop/server'];

  test.each<[Partial<AccessAnswer>, number, string]>([
    [{ by: ['a.yaml:3: b'], remarks: ['c'] }, 0, 'allowed: so\n  a.yaml:3: b\nnote: c\n'],
    [{ verdict: 'denied', answer: 403 }, 1, 'denied with 403: so\n'],
    [{ verdict: 'denied', answer: 'closed' }, 1, 'denied: the connection is closed: so\n'],
    [{ verdict: 'unknown' }, 2, 'unknown: so\n'],
  ])('%j ends with %i', async (answer, code, out) => {
    expect(await ask(answer, ...to)).toMatchObject({ code, out, err: '' });
  });

  test('prints JSON, and findings with their objects as check does', async () => {
    const { out } = await ask({ findings: [missing] }, ...to, '-o', 'json');
    expect(JSON.parse(out)).toMatchObject({
      verdict: 'allowed',
      by: [],
      findings: [{ kind: 'VirtualService', name: 'reviews' }],
    });
    expect((await ask({ findings: [missing] }, ...to)).err).toMatch(/^mesh\/a\.yaml:7: VirtualService\/shop\/reviews/);
  });

  test('hands over the question', async () => {
    const token = file('a.b.c\n');
    const { question } = await ask(
      {},
      ...[
        '--directory',
        'mesh',
        '--from',
        'shop/client',
        ...to,
        '--port',
        '8080',
        '--method',
        'POST',
        '--path',
        '/a?b',
      ],
      ...['--host', 'h', '--header', 'a: b', '--header', 'c:d:e', '--source-ip', '10.0.0.1', '--jwt', token],
    );
    expect(question).toMatchObject({
      source: { kind: 'directory', paths: ['mesh'] },
      from: 'shop/client',
      to: { namespace: 'shop', name: 'server' },
      port: 8080,
      method: 'POST',
      path: '/a?b',
      host: 'h',
      headers: [
        ['a', 'b'],
        ['c', 'd:e'],
      ],
      sourceIp: '10.0.0.1',
      token: 'a.b.c',
    });
    expect((await ask({}, ...to)).question).toMatchObject({ from: undefined, method: 'GET', path: '/', headers: [] });
  });

  test.each([
    [[], "required option '--to <workload>' not specified"],
    [['--to', 'server'], '--to: "server" must be namespace/name'],
    [[...to, '--from', 'client'], '--from: "client" must be spiffe://... or namespace/account'],
    [[...to, '--port', '0'], '--port: "0" must be a number from 1 to 65535'],
    [[...to, '--path', 'a'], '--path: "a" must begin with / and have neither spaces nor #'],
    [[...to, '--header', 'a'], '--header: "a" must be name:value'],
    [[...to, '--source-ip', 'a'], '--source-ip: "a" is not an IP address'],
    [[...to, '--jwt', '/none'], '--jwt /none: cannot be read: ENOENT'],
    [[...to, '--directory', 'a', '--context', 'b'], '--directory and --context cannot be combined'],
  ])('%j ends with 2', async (args, message) => {
    expect(await run(['explain', 'access', ...args])).toEqual({ code: 2, out: '', err: `error: ${message}\n` });
  });

  test('help is not a failure', async () => {
    expect(await run(['explain', 'access', '--help'])).toMatchObject({ code: 0, err: '' });
    expect(await run(['explain'])).toMatchObject({ code: 2 });
  });
});

describe('record and replay', () => {
  test('record asks a server on this machine for a minute, unless told otherwise', async () => {
    const asked: unknown[] = [];
    const record: Program['record'] = (request) => {
      asked.push(request);
      return Promise.resolve({ bytes: 7 });
    };
    expect(await run(['record', 'a'], { record })).toEqual({ code: 0, out: '', err: '7 bytes\n' });
    await run(['record', 'a', '--server', 'localhost:1', '--seconds', '5'], { record });
    expect(asked).toEqual([
      { file: 'a', server: 'localhost:8080', seconds: 60 },
      { file: 'a', server: 'localhost:1', seconds: 5 },
    ]);
    for (const seconds of ['0', '4000', 'x'])
      expect(await run(['record', 'a', '--seconds', seconds], { record })).toEqual({
        code: 1,
        out: '',
        err: 'error: --seconds: must be a number up to 3600\n',
      });
  });

  test('replay says that the bytes are the same, or what differs first', async () => {
    const same = { commits: 2, resources: 30, end: 'the file ends here' };
    expect(await run(['replay', 'a'], { replay: () => Promise.resolve(same) })).toEqual({
      code: 0,
      out: '2 commits replayed, 30 resources compared: the same bytes (the file ends here)\n',
      err: '',
    });
    const difference = { commit: 7, resource: 'mesh T a', recorded: '1', computed: '2' };
    const other = { commits: 1, resources: 3, recordedBy: '0.0.1', difference };
    expect(await run(['replay', 'a'], { replay: () => Promise.resolve(other) })).toEqual({
      code: 1,
      out: 'Commit 7 differs: mesh T a\n  recorded  1\n  computed  2\nRecorded by another version: 0.0.1\n',
      err: '',
    });
  });
});
