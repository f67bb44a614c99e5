import { readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { renderChart } from '../chart/chart.ts';
import { check, checked } from '../check/checked.ts';
import { type Bootstrap, validateBootstrap } from '../peers/envoy.ts';
import { createAuthority } from '../peers/keys.ts';
import { withPeers } from '../peers/with-peers.ts';
import { PAGES, ROOT, blockOf, isCommands, read, readPage } from './markdown.ts';

const GUIDE = 'examples/guide';
const files = readdirSync(join(ROOT, GUIDE)).filter((file) => file.endsWith('.yaml'));
const blocks = PAGES.flatMap((page) => readPage(page).blocks).filter(({ language }) => !isCommands(language));

describe('an example that a page shows', () => {
  test.each(blocks.flatMap(({ id, file, text }) => (file === undefined ? [] : [[id, file, text] as const])))(
    '%s is in %s as it is shown',
    (_, file, text) => {
      expect(`\n${read(file)}`).toContain(`\n${text}`);
    },
  );

  test('has a file if it is an object, and each file is shown', () => {
    const objects = blocks.filter(({ language, text }) => language === 'yaml' && /^apiVersion: \w+\.istio\.io/m.test(text));
    expect(objects.filter(({ file }) => file === undefined)).toEqual([]);
    const shown = new Set(objects.map(({ file }) => file));
    expect(files.filter((file) => !shown.has(`${GUIDE}/${file}`))).toEqual([]);
  });
});

const bookshop = ['services', 'workloads'].map((file) => read(`examples/bookshop/${file}.yaml`));

test.each(files)('check finds nothing wrong with %s', (file) => {
  const findings = checked([...bookshop, read(`${GUIDE}/${file}`)]);
  expect(findings.filter((finding) => !ELSEWHERE.test(finding))).toEqual([]);
});

/** What these files cannot have: the Pods and Secrets of others. */
const ELSEWHERE = /credentialName/;

/** What a proxy of the bookshop gets, with an example instead of the reviews' own routes. */
async function translate(example: string, id: string, ...args: string[]): Promise<string> {
  let out = '';
  const paths = ['services', 'workloads'].map((file) => join(ROOT, `examples/bookshop/${file}.yaml`));
  const code = await runCli(['translate', ...paths, join(ROOT, GUIDE, `${example}.yaml`), '--proxy', id, ...args], {
    ...{ program: () => Promise.resolve(createProgram()), env: {} },
    ...{ out: (text) => void (out += text), err: (text) => void (out += text) },
    signal: new AbortController().signal,
  });
  expect(code, out).toBe(0);
  return out;
}

const SIDECAR = 'sidecar~127.0.0.2~storefront-v1.bookshop~bookshop.svc.cluster.local';
const ROUTER = 'router~127.0.0.3~ingressgateway.bookshop~bookshop.svc.cluster.local';

describe('what an example means to a proxy', () => {
  test.each([
    ['retries', SIDECAR, [], [/timeout: 2s/, /numRetries: 2/, /perTryTimeout: 0\.500s/]],
    ['headers', SIDECAR, [], [/prefixRewrite: \//, /key: x-forwarded-user-agent/, /x-internal/]],
    ['egress', SIDECAR, [], [/outbound\|443\|\|payments\.example\.com/, /name: block_all/]],
    ['tls-origination', SIDECAR, [], [/outbound\|80\|\|prices\.example\.com/, /sni: prices\.example\.com/]],
    ['https-gateway', ROUTER, ['--labels', 'istio=ingressgateway'], [/name: https\.443\.https\.shop\.bookshop/, /requireTls: ALL/]],
    [
      'east-west-gateway',
      'router~127.0.0.3~gateway.istio-system~istio-system.svc.cluster.local',
      ['--labels', 'istio=eastwestgateway'],
      [/0\.0\.0\.0_15443/, /outbound_\.80_\._\.reviews\.bookshop\.svc\.cluster\.local/],
    ],
  ] as const)('%s', async (example, id, args, parts) => {
    const text = await translate(example, id, ...args);
    for (const part of parts) expect(text).toMatch(part);
  });
});

const meshConfig = (text: string, key = 'mesh'): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata:\n  ${key}: |\n${text.replaceAll(/^/gm, '    ')}`;

describe('a part of a configuration that a page shows', () => {
  test.each(['clusters.md#namespaces-of-the-mesh:yaml', 'clusters.md#multi-cluster-services:yaml', 'sidecars.md#with-istios-agent:yaml'])(
    '%s is a mesh config without problems',
    (id) => {
      expect(check([meshConfig(blockOf(id))]).findings).toEqual([]);
    },
  );

  test('clusters.md#several-networks:yaml are MeshNetworks without problems', () => {
    expect(check([meshConfig(blockOf('clusters.md#several-networks:yaml'), 'meshNetworks')]).findings).toEqual([]);
  });

  test('routing.md#names-and-automatic-addresses:yaml is a status that the definition of a ServiceEntry allows', () => {
    const status = parse(blockOf('routing.md#names-and-automatic-addresses:yaml')) as object;
    const entry = parse(read(`${GUIDE}/egress.yaml`).split('---')[0]!) as object;
    expect(check([JSON.stringify({ ...entry, ...status })]).findings).toEqual([]);
  });

  withPeers(['helm'], 'of the chart', () => {
    test.each([
      ...['sidecars.md#templates:yaml', 'status.md#istioctl:yaml', 'status.md#kiali:yaml'],
      'docs/security.md#networkpolicy:yaml',
    ])('%s are values that it takes', async (id) => {
      expect((await renderChart(parse(blockOf(id)) as object)).length).toBeGreaterThan(5);
    });
  });

  withPeers(['envoy'], 'of Envoy', () => {
    test('sidecars.md#connect-any-envoy:yaml is a bootstrap that Envoy takes', async () => {
      const directory = await temporaryDirectory();
      const authority = await createAuthority();
      const { certificate, key } = await authority.client('storefront');
      const certificates = { 'cert-chain.pem': certificate, 'key.pem': key, 'root-cert.pem': authority.certificate };
      for (const [name, text] of Object.entries(certificates)) await writeFile(join(directory, name), text);
      const text = blockOf('sidecars.md#connect-any-envoy:yaml').replaceAll('/etc/certs', directory);
      expect(await validateBootstrap(parse(text) as Bootstrap)).toEqual({ ok: true });
    });
  });
});
