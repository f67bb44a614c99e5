import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { runCli } from './cli.ts';

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(...argv: readonly string[]): Promise<Outcome> {
  let [out, err] = ['', ''];
  const code = await runCli(argv, {
    program: () => Promise.reject(new Error('the rest of the program is not needed')),
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env: {},
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

function file(name: string, content: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'fairlead-inject-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, name), content);
  return join(directory, name);
}

const template = '{metadata: {labels: {app: cart}}, spec: {containers: [{name: cart, image: cart}]}}';
const service = '# of the shop\napiVersion: v1\nkind: Service\nmetadata: {name: cart}\n';

const workload = (kind: string, spec: string): string =>
  `apiVersion: apps/v1\nkind: ${kind}\nmetadata: {name: cart, namespace: shop}\nspec: ${spec}\n`;

test('ProxyConfigs among the files count, wherever they stand; what is wrong with them is told', async () => {
  const proxyConfig = (name: string, spec: string): string =>
    `apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`;
  const { code, out, err } = await run(
    ...['inject', '-f', file('a.yaml', workload('Deployment', `{template: ${template}}`))],
    ...[
      '-f',
      file(
        'b.yaml',
        `${proxyConfig('b', '{environmentVariables: {ISTIO_META_MARK: here, CA_ADDR: elsewhere}}')}---\n${proxyConfig('c', '{concurrency: -1}')}`,
      ),
    ],
  );
  expect(code).toBe(0);
  expect(out).toContain('- name: ISTIO_META_MARK\n');
  expect(out).not.toMatch(/name: CA_ADDR\s+value: elsewhere/);
  expect(err).toMatch(/b\.yaml:\d+: ProxyConfig\/shop\/b: spec\.environmentVariables\["CA_ADDR"\]: is not set/);
  expect(err).toMatch(/b\.yaml:\d+: ProxyConfig\/shop\/c: spec\.concurrency: must be a whole number/);
});

test.each(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job'])(
  'the Pods of a %s get a sidecar',
  async (kind) => {
    const { code, out, err } = await run('inject', '-f', file('a.yaml', workload(kind, `{template: ${template}}`)));
    expect([code, err]).toEqual([0, '']);
    const [object] = parseAllDocuments(out).map((document) => document.toJS() as unknown);
    const variables = [
      { name: 'ISTIO_META_WORKLOAD_NAME', value: 'cart' },
      { name: 'ISTIO_META_OWNER', value: `kubernetes://apis/apps/v1/namespaces/shop/${kind.toLowerCase()}s/cart` },
    ];
    expect(object).toMatchObject({
      kind,
      spec: {
        template: {
          spec: {
            containers: [{ name: 'cart' }],
            initContainers: [{ name: 'istio-init' }, { name: 'istio-proxy', env: expect.arrayContaining(variables) }],
          },
        },
      },
    });
  },
);

test('Pods, CronJobs and the items of lists get one, too', async () => {
  const cron = `apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: report}\nspec: {jobTemplate: {spec: {template: ${template}}}}\n`;
  const list = `apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, ...x}, 3]\n`.replace(
    '...x',
    template.slice(1, -1),
  );
  const { code, out } = await run('inject', '-f', file('a.yaml', `${cron}---\n${list}`));
  expect(code).toBe(0);
  expect(out.match(/- name: istio-proxy$/gm)).toHaveLength(2);
});

test('all else is printed as it is written', async () => {
  const { out, err } = await run('inject', '-f', file('a.yaml', `${service}---\n${workload('ConfigMap', '{}')}`));
  expect(out).toBe(`---\n${service}---\n${workload('ConfigMap', '{}')}`);
  expect(err).toBe('');
});

test('a second run changes nothing', async () => {
  const first = await run('inject', '-f', file('a.yaml', workload('Deployment', `{template: ${template}}`)));
  const second = await run('inject', '-f', file('b.yaml', first.out));
  expect(second).toEqual(first);
});

test('what is left as it is, and why, is on standard error', async () => {
  const text = workload('DaemonSet', '{template: {spec: {hostNetwork: true, containers: [{name: a, image: a}]}}}');
  const path = file('a.yaml', text);
  expect(await run('inject', '-f', path)).toEqual({
    code: 0,
    out: `---\n${text}`,
    err: expect.stringContaining(`${path}:1: DaemonSet shop/cart: left as it is: it uses the network of its node`),
  });
});

test('nothing is printed if the webhook would refuse a Pod', async () => {
  const wrong = template.replace('labels: {', 'annotations: {status.sidecar.istio.io/port: http}, labels: {');
  const path = file('a.yaml', `${service}---\n${workload('Deployment', `{template: ${wrong}}`)}`);
  const { code, out, err } = await run('inject', '-f', path);
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(
    /a\.yaml:5: Deployment shop\/cart: .*annotation status\.sidecar\.istio\.io\/port: "http" is not a port/,
  );
});

test.each([
  ['a file that is not there', ['-f', '/no/such.yaml'], /^error: \/no\/such\.yaml: /],
  ['a directory without settings', ['-f', '-', '--injection-directory', tmpdir()], /config\.yaml:0: is missing/],
])('a mistake is one line: %s', async (_, args, says) => {
  const { code, out, err } = await run('inject', ...args);
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(says);
});

test('a document that cannot be read is refused with its line', async () => {
  const { code, err } = await run('inject', '-f', file('a.yaml', `${service}---\na: [`));
  expect(code).toBe(1);
  expect(err).toMatch(/^error: .*a\.yaml:6: .*YAML/);
});

test('templates and settings may come from a directory, as the chart mounts them', async () => {
  const config = file('config.yaml', 'proxy: {image: mine, discoveryAddress: "f:1"}');
  writeFileSync(join(config, '../sidecar.yaml'), 'spec: {containers: [{name: istio-proxy, image: "${image}"}]}');
  const { out } = await run(
    ...['inject', '--injection-directory', join(config, '..')],
    ...['-f', file('a.yaml', workload('Deployment', `{template: ${template}}`))],
  );
  expect(out).toContain('image: mine');
  expect(out).not.toContain('istio-init');
});

test('interception is printed without a change to this machine', async () => {
  const { code, out, err } = await run('intercept', '-b', '8080', '--families', 'ipv4', '--print');
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('tcp dport 8080 redirect to :15006');
  expect((await run('intercept', '--families', 'both', '--print', 'iptables')).out).toMatch(
    /^# iptables-restore[^#]*# ip6tables-restore[^#]*$/,
  );
});

test('a wrong flag of interception is one line', async () => {
  expect(await run('intercept', '-b', 'http')).toEqual({
    code: 1,
    out: '',
    err: 'error: --istio-inbound-ports: "http" is not a port; write for example "8080,9090"\n',
  });
});
