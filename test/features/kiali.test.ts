import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { XdsClient } from '../conformance/xds-client.ts';
import { field, nodeField } from '../harness/raw-ads.ts';
import { kiali } from './kiali.ts';
import type { Program } from './program.ts';
import { CDS, EDS, LDS, RDS } from './proxy.ts';
import { ratings, reviews, rule, split } from './shop.ts';
import { Directory } from './sources.ts';

const METADATA = { CLUSTER_ID: 'Kubernetes', ISTIO_VERSION: '1.30.0', NAMESPACE: 'shop' };

async function shop(): Promise<Program> {
  const directory = await Directory.create();
  await directory.apply(...reviews, ...ratings, rule, split(80, 20));
  return directory.start();
}

/** As Kiali sends it: to a forwarded port. */
const ask = ({ serving }: Program, { port, path }: (typeof kiali.requests)[keyof typeof kiali.requests]) =>
  fetch(`http://localhost:${serving.ports[port]}${path}`);

/** Each field is a text, or is absent: Go's decoder refuses the whole list for the sake of any other value. */
async function proxiesOf(program: Program): Promise<Record<string, string>[]> {
  const elements = (await (await ask(program, kiali.requests.proxies)).json()) as Record<string, unknown>[];
  return elements.map((element) =>
    Object.fromEntries(
      kiali.proxyFields.flatMap((name) => {
        const value = element[name];
        if (value === undefined) return [];
        return [[name, typeof value === 'string' ? value : expect.fail(`${name} is not a text`)]];
      }),
    ),
  );
}

test('the version and the health of a replica', async () => {
  const program = await shop();
  await program.logged('Ready');
  const version = await ask(program, kiali.requests.version);
  expect([version.status, await version.text()]).toEqual([200, expect.stringMatching(/\d+\.\d+\.\d+/)]);
  expect((await ask(program, kiali.requests.ready)).status).toBe(200);
});

test('a proxy that has acknowledged everything is synced, under the name of its Pod and its cluster', async () => {
  const program = await shop();
  await program.connect(true);
  const client = new XdsClient(program.serving.ports.grpc!, true);
  onTestFinished(() => client.close());
  client.sendBytes(
    Buffer.concat([nodeField('sidecar~10.0.0.7~odd-1.shop~shop.svc.cluster.local', METADATA), field(2, CDS)]),
  );
  const { nonce, typeUrl } = await client.next();
  const odd = async () => (await proxiesOf(program)).find(({ proxy }) => proxy === 'odd-1.shop');
  expect(await odd()).toMatchObject({
    ...{ cluster_id: 'Kubernetes', proxy: 'odd-1.shop', istio_version: '1.30.0' },
    ...{ cluster_sent: nonce, cluster_acked: '' },
  });
  client.send({ typeUrl, nonce });
  client.send({ typeUrl: EDS, subscribe: ['outbound|80||ratings.shop.svc.cluster.local'] });
  const { nonce: second } = await client.next(EDS);
  client.send({ typeUrl: EDS, nonce: second });
  await expect.poll(odd).toMatchObject({ cluster_acked: nonce, endpoint_sent: second, endpoint_acked: second });

  const whole = (await proxiesOf(program)).find(({ proxy }) => proxy === 'client.shop')!;
  for (const kind of ['cluster', 'listener', 'route', 'endpoint'])
    expect([kind, whole[`${kind}_sent`]]).toEqual([kind, expect.stringMatching(/./)]);
  for (const kind of ['cluster', 'listener', 'route', 'endpoint'])
    expect([kind, whole[`${kind}_acked`]]).toEqual([kind, whole[`${kind}_sent`]]);
});

test('a proxy that comes back to another server with everything is synced, and is sent nothing', async () => {
  const [before, after] = [await shop(), await shop()];
  for (const program of [before, after]) await program.logged('Ready');
  const node = { id: 'sidecar~10.0.0.7~back-1.shop~shop.svc.cluster.local', texts: METADATA };
  const initial: Record<string, Record<string, string>> = {};
  const types = [CDS, EDS, LDS, RDS];
  const clients = [before, after].map(({ serving }) => new XdsClient(serving.ports.grpc!, true));
  onTestFinished(() => clients.forEach((client) => client.close()));
  const begin = (client: XdsClient, typeUrl: string): void =>
    client.send({
      typeUrl,
      ...(typeUrl === CDS && { node }),
      ...(typeUrl === EDS && { subscribe: ['outbound|80||ratings.shop.svc.cluster.local'] }),
      ...(typeUrl === RDS && { subscribe: ['80'] }),
      initial: initial[typeUrl] ?? {},
    });
  const [first, second] = clients as [XdsClient, XdsClient];
  for (const typeUrl of types) {
    begin(first, typeUrl);
    const { nonce, versions } = await first.next(typeUrl);
    initial[typeUrl] = Object.fromEntries(versions);
    first.send({ typeUrl, nonce });
  }
  for (const typeUrl of types) begin(second, typeUrl);
  const state = async () => (await proxiesOf(after)).find(({ proxy }) => proxy === 'back-1.shop');
  const same = 'resumed';
  await expect.poll(state).toMatchObject({
    ...{ cluster_sent: same, cluster_acked: same, endpoint_sent: same, endpoint_acked: same },
    ...{ listener_sent: same, listener_acked: same, route_sent: same, route_acked: same },
  });
});

test('the metrics of its dashboards', async () => {
  const program = await shop();
  const body = await (await fetch(`http://localhost:${program.serving.ports.monitoring}/metrics`)).text();
  for (const name of kiali.metrics) expect(body).toMatch(new RegExp(`^${name}[ {]`, 'm'));
});

interface Definition {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
}

test('the kinds that it lists have definitions, or the guide says that they must be added', () => {
  const root = join(import.meta.dirname, '../..');
  const own = readdirSync(join(root, 'crds')).flatMap((file) => {
    const { spec } = parse(readFileSync(join(root, 'crds', file), 'utf8')) as Definition;
    return spec.versions.filter(({ served }) => served).map(({ name }) => `${spec.group}/${name} ${spec.names.kind}`);
  });
  const listed = Object.entries(kiali.objects.kinds).flatMap(([group, names]) =>
    names.map((name) => `${group} ${name}`),
  );
  const missing = listed
    .filter((kind) => !own.includes(kind))
    .map((kind) => `\`${kind.slice(kind.indexOf(' ') + 1)}\``);
  const guide = readFileSync(join(root, 'docs/guide/status.md'), 'utf8').replace(/\s+/g, ' ');
  expect(guide).toContain(`Kiali lists kinds that Fairlead does not read (${missing.join(', ')})`);
});
