import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { leavesOf } from '../../src/ads/store/resource.ts';
import { bytesOf } from '../../src/ads/wire/bytes-of.ts';
import { createValidator } from '../../src/api/validate.ts';
import type { ExplainedResource, Translation } from '../../src/cli/program.ts';
import { readMeshSettings } from '../../src/config/config.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { Trace } from '../../src/envoy/encode/trace.ts';
import { translateFiles } from '../../src/commands/offline.ts';
import { goldenNames, readGoldenCase } from '../golden/case.ts';
import { meshOf } from '../golden/mesh-of.ts';
import { type EnvoyNode, connectedProxy, testProtos } from '../harness/mesh.ts';

const bookshop = new URL('../../examples/bookshop', import.meta.url).pathname;
const nodes = {
  sidecar: { id: 'sidecar~127.0.0.2~storefront.bookshop~bookshop.svc.cluster.local' },
  gateway: {
    id: 'router~127.0.0.9~gateway.bookshop~bookshop.svc.cluster.local',
    metadata: { LABELS: { istio: 'ingressgateway' } },
  },
};

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-explain-'));
  await cp(bookshop, directory, { recursive: true });
});

afterEach(() => rm(directory, { recursive: true }));

function translate(node: EnvoyNode): Promise<Translation> {
  const mesh = readMeshSettings({ flags: {}, env: {} });
  return translateFiles({ paths: [directory], proxy: connectedProxy('', node), mesh, explain: true });
}

interface ServedRoute {
  readonly where: string;
  readonly from: readonly string[];
  readonly content: string;
}

/** The routes of all tables, each with what it was made from. */
function routesOf({ explained, resources }: Translation): ServedRoute[] {
  return (explained?.rds ?? []).flatMap((table: ExplainedResource, t) =>
    (table.virtualHosts ?? []).flatMap((virtualHost, v) =>
      virtualHost.routes.map(({ from }, r) => {
        const served = resources.rds[t] as unknown as { virtualHosts: { routes: object[] }[] };
        const content = JSON.stringify(served.virtualHosts[v]!.routes[r]);
        return { where: `${table.name}/${virtualHost.name}/${r}`, from, content };
      }),
    ),
  );
}

describe.each(Object.entries(nodes))('the bookshop, for a %s', (_, node) => {
  test('every route names a line, and editing that line changes the routes that name it, and no others', async () => {
    const before = routesOf(await translate(node));
    const places = new Set(before.flatMap(({ from }) => from.filter((place) => place.includes(': spec.http['))));
    expect(places.size).toBeGreaterThan(0);
    for (const place of places) {
      const [file = '', line = ''] = place.split(':');
      const original = await readFile(file, 'utf8');
      const lines = original.split('\n');
      // Routes of the bookshop begin with their name.
      expect(lines[Number(line) - 1]).toMatch(/^ {2}- name: /);
      lines[Number(line) - 1] += '-edited';
      await writeFile(file, lines.join('\n'));
      const after = routesOf(await translate(node));
      const changed = before.filter(({ content }, i) => after[i]!.content !== content).map(({ where }) => where);
      const named = before.filter(({ from }) => from.includes(place)).map(({ where }) => where);
      expect(changed).toEqual(named);
      await writeFile(file, original);
    }
  });
});

test('a route that came by a delegate, a host with other names and a file of a server name the lines that gave them', async () => {
  const files = { mode: 'SIMPLE', serverCertificate: '/tls/cert.pem', privateKey: '/tls/key.pem' };
  await writeFile(
    join(directory, 'more.yaml'),
    `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: root, namespace: bookshop }
spec:
  hosts: [other.bookshop.svc.cluster.local]
  http:
  - { name: own, match: [{ uri: { exact: /own } }], route: [{ destination: { host: catalog } }] }
  - { name: root, match: [{ uri: { prefix: /part } }], delegate: { name: part } }
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: part, namespace: bookshop }
spec:
  http:
  - { name: part, route: [{ destination: { host: catalog } }] }
---
apiVersion: v1
kind: Service
metadata: { name: other, namespace: bookshop }
spec: { type: ExternalName, externalName: catalog.bookshop.svc.cluster.local, ports: [{ name: http, port: 80 }] }
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: files, namespace: bookshop }
spec:
  selector: { istio: ingressgateway }
  servers:
  - { hosts: ['a.example.com'], port: { number: 8443, name: https, protocol: HTTPS }, tls: ${JSON.stringify(files)} }
`,
  );
  const file = join(directory, 'more.yaml');
  const sidecar = await translate(nodes.sidecar);
  const root = `VirtualService/bookshop/root: spec.http[1]`;
  const part = `VirtualService/bookshop/part: spec.http[0]`;
  expect(routesOf(sidecar).map(({ from }) => from)).toContainEqual([`${file}:8: ${root}`, `${file}:15: ${part}`]);
  const hosts = (sidecar.explained?.rds ?? []).flatMap(({ virtualHosts = [] }) => virtualHosts);
  const other = hosts.find(({ name }) => name.startsWith('other.'));
  expect(other?.from).toContain(`${file}:17: Service/bookshop/other`);
  const { explained } = await translate(nodes.gateway);
  expect(explained?.sds?.map(({ from }) => from)).toEqual([[`${file}:22: Gateway/bookshop/files`]]);
});

test('every route of the golden cases says what it was made from', () => {
  const validate = createValidator();
  let explained = 0;
  for (const name of goldenNames()) {
    const golden = readGoldenCase(name, validate);
    const trace = new Trace();
    const served = meshOf(golden, { encoder: { trace } });
    for (const proxy of golden.proxies.keys())
      for (const table of served.snapshot(proxy).rds)
        for (const leaf of leavesOf(table.body)) {
          const { virtualHosts = [] } = testProtos().decode(types.route, bytesOf(leaf));
          for (const virtualHost of virtualHosts) {
            // What no object asks for.
            if (/^(allow_any|block_all|blackhole:)/.test(virtualHost.name ?? '')) continue;
            const { routes = [] } = virtualHost;
            const sources = trace.routesOf(leaf);
            expect(sources.map(({ length }) => length > 0)).toEqual(routes.map(() => true));
            explained += routes.length;
          }
        }
  }
  expect(explained).toBeGreaterThan(200);
});
