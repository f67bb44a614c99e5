import { describe, expect, onTestFinished, test } from 'vitest';
import type { Any, MessageTypes } from '../../src/envoy/gen/types.gen.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { testProtos } from '../harness/mesh.ts';
import { QuestionStream } from '../harness/question.ts';
import { secureCall } from '../harness/secure-call.ts';
import { serviceEntry } from './objects.ts';
import { get } from './program.ts';
import { HOST, NAME_TABLE } from '../../src/model/named-host.ts';
import { CDS, EDS, LDS, RDS } from './proxy.ts';
import { SERVER, startSecure, tokenOf } from './secure-cluster.ts';
import { clusterOf, hostOf, ratings, reviews, rule, split } from './shop.ts';
import { Directory } from './sources.ts';

const SYNCZ = 'istio.io/debug/syncz';
const CONFIG_DUMP = 'istio.io/debug/config_dump';
const DEBUG = 'istio.io/debug';

const external = serviceEntry('external', {
  hosts: ['api.example.com'],
  location: 'MESH_EXTERNAL',
  resolution: 'STATIC',
  ports: [{ number: 443, name: 'tls', protocol: 'TLS' }],
  endpoints: [{ address: '192.0.2.1', labels: { version: 'v9' } }],
});

async function shop(delta = true) {
  const directory = await Directory.create();
  await directory.apply(...reviews, ...ratings, rule, split(80, 20), external);
  const program = await directory.start();
  const proxy = await program.connect(delta);
  const page = async <T>(name: string): Promise<T> =>
    JSON.parse((await get(program.serving.ports.monitoring, `/debug/${name}`)).body) as T;
  const question = (asDelta = delta): QuestionStream => new QuestionStream(program.serving.ports.grpc!, asDelta);
  return { directory, program, proxy, page, question };
}

const unpack = <Name extends keyof MessageTypes>(type: Name, { typeUrl, value }: Any): MessageTypes[Name] => {
  expect(typeUrl).toBe(`type.googleapis.com/${type}`);
  return testProtos().decode(type, value as Uint8Array) as MessageTypes[Name];
};
const text = ({ value }: Any): string => Buffer.from(value as Uint8Array).toString();

describe.each([
  ['delta', true],
  ['state of the world', false],
])('questions over xDS, %s', (_, delta) => {
  test('a config dump has what the proxy holds, byte for byte', async () => {
    const { question, proxy } = await shop(delta);
    const { resources, typeUrl } = await question().ask(CONFIG_DUMP, 'client.shop');
    expect(typeUrl).toBe(CONFIG_DUMP);
    expect(resources.map((each) => each.typeUrl?.replace('type.googleapis.com/envoy.admin.v3.', ''))).toEqual([
      'BootstrapConfigDump',
      'ClustersConfigDump',
      'ListenersConfigDump',
      'ScopedRoutesConfigDump',
      'RoutesConfigDump',
      'SecretsConfigDump',
      'EcdsConfigDump',
    ]);
    const [, clusters, listeners, , routes] = resources;
    const dumped = {
      [CDS]: unpack('envoy.admin.v3.ClustersConfigDump', clusters!).dynamicActiveClusters?.map(
        ({ cluster }) => cluster,
      ),
      [LDS]: unpack('envoy.admin.v3.ListenersConfigDump', listeners!).dynamicListeners?.map(
        ({ activeState }) => activeState?.listener,
      ),
      [RDS]: unpack('envoy.admin.v3.RoutesConfigDump', routes!).dynamicRouteConfigs?.map(
        ({ routeConfig }) => routeConfig,
      ),
    };
    for (const [type, messages = []] of Object.entries(dumped)) {
      expect(messages.map((any) => any?.typeUrl)).toEqual(messages.map(() => type));
      const bytes = (all: Iterable<Uint8Array>): string[] =>
        Array.from(all, (one) => Buffer.from(one).toString('hex')).sort();
      expect(bytes(messages.map((any) => any?.value as Uint8Array))).toEqual(bytes(proxy.held(type).values()));
    }
  });

  test('proxies are shown as far as they have come, by replica; whoever asks is not one of them', async () => {
    const { question, program } = await shop(delta);
    const stream = question();
    for (let round = 0; round < 3; round++) {
      const { resources, controlPlane } = await stream.ask(SYNCZ);
      expect(JSON.parse(controlPlane!)).toEqual({
        Component: 'istiod',
        ID: 'one',
        Info: { version: expect.any(String) },
      });
      expect(resources).toHaveLength(1);
      const { node, genericXdsConfigs } = unpack('envoy.service.status.v3.ClientConfig', resources[0]!);
      expect(node).toMatchObject({ id: 'client.shop' });
      expect(genericXdsConfigs).toEqual(
        [CDS, EDS, LDS, RDS].map((typeUrl) =>
          expect.objectContaining({ typeUrl, configStatus: 'SYNCED', lastUpdated: expect.any(Object) }),
        ),
      );
    }
    expect(program.serving.engine.mesh.inputs.proxies.size).toBe(1);
    expect(program.serving.engine.ads.streams()).toHaveLength(1);
  });

  test('an acknowledgement is not a question', async () => {
    const { question } = await shop(delta);
    const stream = question();
    const { nonce } = await stream.ask(SYNCZ);
    stream.send(SYNCZ, [], nonce);
    const { resources } = await stream.ask(DEBUG, 'list');
    expect(JSON.parse(text(resources[0]!))).toContain('syncz');
  });

  test('debug pages can be asked for by name', async () => {
    const { question, page } = await shop(delta);
    const ask = async (name: string): Promise<string> => {
      const { resources } = await question().ask(DEBUG, name);
      return text(resources[0]!);
    };
    expect(JSON.parse(await ask('registryz'))).toEqual(await page('registryz'));
    expect(JSON.parse(await ask('edsz?proxyID=client.shop'))).toEqual(await page('edsz?proxyID=client.shop'));
    expect(await ask('edsz?proxyID=gone.shop')).toMatch(/^Proxy not connected to this Pilot instance\./);
    expect(await ask('edsz')).toMatch(/^You must provide a proxyID in the query string/);
    expect(await ask('nonsense')).toBe('404 page not found');
  });

  test('an unknown proxy is said to be elsewhere, and a question without a name is refused', async () => {
    const { question } = await shop(delta);
    const { resources } = await question().ask(CONFIG_DUMP, 'gone.shop');
    expect(resources.map(text)).toEqual([expect.stringMatching(/^Proxy not connected to this Pilot instance/)]);
    await expect(question().ask(CONFIG_DUMP)).rejects.toThrow('INVALID_ARGUMENT: exactly one resource name');
    await expect(question().ask(DEBUG, 'list', 'syncz')).rejects.toThrow('INVALID_ARGUMENT');
  });
});

test('the names that our own agent asks for are shown by a type that istioctl has a word for', async () => {
  const { program, question } = await shop();
  const agent = new XdsClient(program.serving.ports.grpc!, true);
  onTestFinished(() => agent.close());
  agent.send({
    typeUrl: HOST,
    node: { id: 'sidecar~10.0.0.8~own.shop~shop.svc.cluster.local', texts: { DNS_CAPTURE: 'true' } },
  });
  const { nonce } = await agent.next(HOST);
  agent.send({ typeUrl: HOST, nonce });
  const { resources } = await question().ask(SYNCZ);
  const states = resources.map((each) => unpack('envoy.service.status.v3.ClientConfig', each));
  expect(states.find(({ node }) => node?.id === 'own.shop')?.genericXdsConfigs).toMatchObject([
    { typeUrl: NAME_TABLE },
  ]);
});

test('a stream for questions ends after a minute, which no limit counts', async () => {
  const { program, question } = await shop();
  const stream = question();
  await stream.ask(SYNCZ);
  let end: unknown;
  void stream.next().then((event) => (end = event));
  await expect
    .poll(() => {
      program.clock.skip(20_000);
      return end;
    })
    .toBe('DEADLINE_EXCEEDED: questions are answered for 60 s');
  expect(program.serving.engine.ads.counts()).toMatchObject({ failures: 0, limits: { first_request_time: 0 } });
});

test('on the secure port, debug information is for service accounts of the root namespace', async () => {
  const { program, roots } = await startSecure();
  const ask = (account: string, type: string, ...names: string[]) => {
    const call = secureCall(roots, { token: tokenOf(account) }, SERVER);
    return new QuestionStream(program.serving.ports.secure!, false, call).ask(type, ...names);
  };
  expect((await ask('istio-system:default', SYNCZ)).resources).toEqual([]);
  expect((await ask('istio-system:default', DEBUG, 'configz')).resources).toHaveLength(1);
  for (const type of [SYNCZ, CONFIG_DUMP, DEBUG])
    await expect(ask('shop:default', type, 'list')).rejects.toThrow(
      'PERMISSION_DENIED: debug information is for service accounts in namespace istio-system',
    );
});

/** What Istio's tools read, field by field. */
describe('pages', () => {
  test('config_dump has what the proxy holds, as Envoy shows it', async () => {
    const { page, proxy } = await shop();
    const section = async (name: string, query = ''): Promise<Record<string, unknown>> => {
      const { configs } = await page<{ configs: ({ '@type': string } & Record<string, unknown>)[] }>(
        `config_dump?proxyID=client.shop${query}`,
      );
      return configs.find((each) => each['@type'] === `type.googleapis.com/envoy.admin.v3.${name}`) ?? {};
    };
    const json = (type: string, name: string): object => ({
      '@type': type,
      ...(testProtos().toJson(type.slice(type.lastIndexOf('/') + 1), proxy.held(type).get(name)!) as object),
    });
    const { dynamicActiveClusters } = await section('ClustersConfigDump');
    expect(dynamicActiveClusters).toHaveLength(proxy.held(CDS).size);
    const cluster = clusterOf('reviews', 'v1');
    expect(dynamicActiveClusters).toContainEqual({ versionInfo: expect.any(String), cluster: json(CDS, cluster) });
    const { dynamicListeners } = await section('ListenersConfigDump');
    expect(dynamicListeners).toContainEqual({
      name: 'virtualOutbound',
      activeState: { versionInfo: expect.any(String), listener: json(LDS, 'virtualOutbound') },
    });
    const { dynamicRouteConfigs } = await section('RoutesConfigDump');
    expect(dynamicRouteConfigs).toContainEqual({ versionInfo: expect.any(String), routeConfig: json(RDS, '80') });
    expect(await section('EndpointsConfigDump')).toEqual({});
    const { dynamicEndpointConfigs } = await section('EndpointsConfigDump', '&include_eds');
    expect(dynamicEndpointConfigs).toContainEqual({
      versionInfo: expect.any(String),
      endpointConfig: json(EDS, cluster),
    });
    const edsz = await page<{ configs: unknown[] }>('edsz?proxyID=client.shop');
    expect(edsz.configs).toHaveLength(proxy.held(EDS).size);
    expect(edsz.configs).toContainEqual(json(EDS, cluster));
    const some = await page<{ configs: { '@type': string }[] }>(`config_dump?proxyID=client.shop&types=rds,${LDS}`);
    expect(new Set(some.configs.map((each) => each['@type']))).toEqual(new Set([RDS, LDS]));
  });

  test('registryz shows hosts, with their ports and addresses', async () => {
    const { page } = await shop();
    const found = await page<Record<string, unknown>[]>('registryz');
    expect(found.find(({ hostname }) => hostname === hostOf('reviews'))).toMatchObject({
      Attributes: {
        ServiceRegistry: 'Kubernetes',
        Name: 'reviews',
        Namespace: 'shop',
        ExportTo: { '*': {} },
        LabelSelectors: { app: 'reviews' },
      },
      ports: [{ name: 'http', port: 80, protocol: 'HTTP' }],
      creationTime: '0001-01-01T00:00:00Z',
      clusterVIPs: { Addresses: { Kubernetes: ['10.96.0.1'] } },
      defaultAddress: '10.96.0.1',
      Resolution: 0,
      MeshExternal: false,
    });
    expect(found.find(({ hostname }) => hostname === 'api.example.com')).toMatchObject({
      Attributes: { ServiceRegistry: 'External', Namespace: 'shop', ObjectName: 'external' },
      ports: [{ name: 'tls', port: 443, protocol: 'TLS' }],
      MeshExternal: true,
    });
  });

  test('endpointShardz shows endpoints by host and namespace', async () => {
    const { page } = await shop();
    const found =
      await page<Record<string, Record<string, { Shards: Record<string, Record<string, unknown>[]> }>>>(
        'endpointShardz',
      );
    const shards = found[hostOf('reviews')]?.['shop']?.Shards['Kubernetes/Kubernetes'];
    expect(shards).toHaveLength(2);
    expect(shards?.[0]).toMatchObject({
      Addresses: ['10.1.0.1'],
      EndpointPort: 8080,
      ServicePortName: 'http',
      Labels: { version: 'v1' },
      Locality: { Label: '', ClusterID: 'Kubernetes' },
      HealthStatus: 1,
      Namespace: 'shop',
    });
    expect(found['api.example.com']?.['shop']?.Shards['External/Kubernetes']?.[0]).toMatchObject({
      Addresses: ['192.0.2.1'],
      EndpointPort: 443,
      Labels: { version: 'v9' },
    });
  });

  test('syncz shows a rejection in the words of the proxy', async () => {
    const { page, program } = await shop();
    const client = new XdsClient(program.serving.ports.grpc!, true);
    onTestFinished(() => client.close());
    const features = ['xds.config.supports-resource-ttl'];
    client.send({ typeUrl: CDS, node: { id: 'sidecar~10.0.0.7~odd.shop~shop.svc.cluster.local', features } });
    const { nonce } = await client.next();
    expect(await page('syncz?proxyID=odd.shop')).toMatchObject([{ client_features: features }]);
    client.send({ typeUrl: CDS, nonce, error: 'these clusters are odd' });
    await expect
      .poll(
        async () => (await page<{ resources: Record<string, object> }[]>('syncz?proxyID=odd.shop'))[0]?.resources[CDS],
      )
      .toMatchObject({ lastError: expect.stringContaining('these clusters are odd') });
    const { resources } = await new QuestionStream(program.serving.ports.grpc!, false).ask(SYNCZ);
    const statuses = resources.map((each) => unpack('envoy.service.status.v3.ClientConfig', each));
    const odd = statuses.find(({ node }) => node?.id === 'odd.shop')?.genericXdsConfigs;
    expect(odd?.find(({ typeUrl }) => typeUrl === CDS)).toMatchObject({
      configStatus: 'ERROR',
      errorState: { details: expect.stringContaining('these clusters are odd') },
    });
  });
});
