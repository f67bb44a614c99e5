import { beforeEach, expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { MeshLab, objectOf, proxy, rule, service, slice } from '../../../test/harness/lab.ts';

const peers = (
  path: string,
  mode: string,
  spec: object = {},
  creationTimestamp = '2026-01-01T00:00:00Z',
): KubernetesObject => {
  const object = objectOf('PeerAuthentication', path, { spec: { mtls: { mode }, ...spec } }, { creationTimestamp });
  return { ...object, apiVersion: 'security.istio.io/v1' };
};
/** Beside Istio's agent a proxy has certificates. */
const agent = { ISTIO_VERSION: '1.32.0' };
const selector = { matchLabels: { app: 'a' } };
const pod = (name: string, ip: string, labels: object) =>
  objectOf(
    'Pod',
    `shop/${name}`,
    { spec: {}, status: { podIP: ip } },
    {
      labels: { 'security.istio.io/tlsMode': 'istio', ...labels },
    },
  );

let lab: MeshLab;

beforeEach(() => {
  const target = (name: string) => ({ targetRef: { kind: 'Pod', name, namespace: 'shop' } });
  const endpoints = slice('shop/a', '10.1.0.1', '10.1.0.2') as unknown as {
    readonly endpoints: readonly object[];
    readonly ports: readonly object[];
  };
  lab = new MeshLab(
    [
      service('shop/a', {
        selector: { shop: 'yes' },
        ports: [
          { name: 'http', port: 80 },
          { name: 'tcp', port: 90 },
        ],
      }),
      {
        ...endpoints,
        ports: [
          { name: 'http', port: 8080 },
          { name: 'tcp', port: 9090 },
        ],
        endpoints: endpoints.endpoints.map((endpoint, i) => ({ ...endpoint, ...target(i === 0 ? 'a' : 'b') })),
      } as unknown as KubernetesObject,
      pod('a', '10.1.0.1', { shop: 'yes', app: 'a' }),
      pod('b', '10.1.0.2', { shop: 'yes', app: 'b' }),
    ],
    [
      proxy('client.far', {}, agent),
      proxy('a.shop', { app: 'a', shop: 'yes' }, { ...agent, INSTANCE_IPS: '10.1.0.1' }),
    ],
  );
});

interface Assignment {
  readonly clusterName: string;
  readonly endpoints?: readonly {
    readonly lbEndpoints: readonly {
      readonly endpoint: { readonly address: { readonly socketAddress: { address: string; portValue: number } } };
      readonly metadata?: { readonly filterMetadata?: Readonly<Record<string, unknown>> };
    }[];
  }[];
}

/** `address:port`, of endpoints that are spoken to in mutual TLS. */
function secured(): string[] {
  return (lab.json('client.far').eds as Assignment[])
    .flatMap(({ endpoints = [] }) => endpoints.flatMap(({ lbEndpoints }) => lbEndpoints))
    .filter(({ metadata }) => metadata?.filterMetadata?.['envoy.transport_socket_match'] !== undefined)
    .map(({ endpoint: { address } }) => `${address.socketAddress.address}:${address.socketAddress.portValue}`)
    .sort();
}

const cluster = () =>
  (
    lab.json('client.far').cds as {
      readonly name: string;
      readonly transportSocketMatches?: readonly { readonly name: string }[];
    }[]
  ).find(({ name }) => name === 'outbound|80||a.shop.svc.cluster.local')!;
const matches = () => cluster().transportSocketMatches?.map(({ name }) => name);

const [a80, a90, b80, b90] = ['10.1.0.1:8080', '10.1.0.1:9090', '10.1.0.2:8080', '10.1.0.2:9090'];
const both = ['tlsMode-istio', 'tlsMode-disabled'];

test.each<[string, KubernetesObject[], (string | undefined)[], string[] | undefined]>([
  ['no policy', [], [a80, a90, b80, b90], both],
  ['mesh PERMISSIVE', [peers('istio-system/p', 'PERMISSIVE')], [a80, a90, b80, b90], both],
  ['mesh STRICT', [peers('istio-system/p', 'STRICT')], [a80, a90, b80, b90], both],
  ['mesh DISABLE', [peers('istio-system/p', 'DISABLE')], [], undefined],
  ['namespace DISABLE', [peers('shop/p', 'DISABLE')], [], undefined],
  ['another namespace DISABLE', [peers('far/p', 'DISABLE')], [a80, a90, b80, b90], both],
  ['workload DISABLE', [peers('shop/p', 'DISABLE', { selector })], [b80, b90], both],
  [
    'port DISABLE',
    [peers('shop/p', 'STRICT', { selector, portLevelMtls: { 9090: { mode: 'DISABLE' } } })],
    [a80, b80, b90],
    both,
  ],
  [
    'the service port is not the workload port',
    [peers('shop/p', 'STRICT', { selector, portLevelMtls: { 90: { mode: 'DISABLE' } } })],
    [a80, a90, b80, b90],
    both,
  ],
  [
    'port STRICT, workload DISABLE',
    [peers('shop/p', 'DISABLE', { selector, portLevelMtls: { 8080: { mode: 'STRICT' } } })],
    [a80, b80, b90],
    both,
  ],
  ['UNSET inherits DISABLE', [peers('istio-system/p', 'DISABLE'), peers('shop/p', 'UNSET')], [], undefined],
  [
    'namespace PERMISSIVE, mesh DISABLE',
    [peers('istio-system/p', 'DISABLE'), peers('shop/p', 'PERMISSIVE')],
    [a80, a90, b80, b90],
    both,
  ],
  ['a selector in the root namespace', [peers('istio-system/p', 'DISABLE', { selector })], [a80, a90, b80, b90], both],
  // In Istio, plaintext is sent to a server that accepts none.
  [
    'namespace DISABLE, workload STRICT',
    [peers('shop/n', 'DISABLE'), peers('shop/p', 'STRICT', { selector })],
    [a80, a90],
    both,
  ],
  [
    'mesh DISABLE, port PERMISSIVE',
    [
      peers('istio-system/n', 'DISABLE'),
      peers('shop/p', 'UNSET', { selector, portLevelMtls: { 8080: { mode: 'PERMISSIVE' } } }),
    ],
    [a80],
    both,
  ],
  [
    'namespace DISABLE, workload DISABLE',
    [peers('shop/n', 'DISABLE'), peers('shop/p', 'DISABLE', { selector })],
    [],
    undefined,
  ],
])('%s: clients speak mutual TLS where it is accepted', (_, policies, expected, sockets) => {
  lab.apply(policies);
  expect(secured().filter((endpoint) => [a80, a90, b80, b90].includes(endpoint))).toEqual(expected);
  expect(matches()).toEqual(sockets);
  // And back again.
  lab.delete(policies);
  expect(secured()).toEqual([a80, a90, b80, b90]);
  expect(matches()).toEqual(both);
});

test('of two policies for all of a namespace the older is in force, and of two for a workload, as a whole', () => {
  lab.apply([peers('shop/young', 'DISABLE', {}, '2026-02-01T00:00:00Z'), peers('shop/old', 'STRICT')]);
  expect(secured()).toEqual([a80, a90, b80, b90]);
  const port = (mode: string) => ({ selector, portLevelMtls: { 8080: { mode } } });
  lab.apply([
    peers('shop/w-old', 'UNSET', { selector, portLevelMtls: { 9090: { mode: 'STRICT' } } }),
    peers('shop/w-young', 'UNSET', port('DISABLE'), '2026-02-01T00:00:00Z'),
  ]);
  expect(secured()).toEqual([a80, a90, b80, b90]);
});

test('a DestinationRule says whether TLS is spoken, whatever servers accept', () => {
  lab.apply([
    peers('shop/p', 'STRICT'),
    rule('shop/a', 'a', { subsets: [], trafficPolicy: { tls: { mode: 'DISABLE' } } }),
  ]);
  expect(matches()).toBeUndefined();
  expect(secured()).toEqual([]);
});

interface Chain {
  readonly name?: string;
  readonly filterChainMatch?: { readonly transportProtocol?: string; readonly destinationPort?: number };
  readonly transportSocket?: object;
}

function chains(stream: string): { readonly tls: number; readonly plain: number } {
  const found = (lab.json(stream).lds as { readonly name: string; readonly filterChains?: readonly Chain[] }[]).find(
    ({ name }) => name === 'virtualInbound',
  );
  const served = (found?.filterChains ?? []).filter(({ name }) => name !== 'virtualInbound-blackhole');
  const tls = served.filter(({ transportSocket }) => transportSocket !== undefined).length;
  return { tls, plain: served.length - tls };
}

test.each([
  ['PERMISSIVE', true, true],
  ['STRICT', true, false],
  ['DISABLE', false, true],
])('a server in mode %s accepts TLS: %j, plaintext: %j', (mode, tls, plain) => {
  lab.apply([peers('shop/p', mode)]);
  const found = chains('a.shop');
  expect([found.tls > 0, found.plain > 0]).toEqual([tls, plain]);
});

test('a server without certificates accepts plaintext, unless it is to accept mutual TLS only: then nothing', () => {
  lab.join([proxy('bare.shop', { app: 'a', shop: 'yes' }, { INSTANCE_IPS: '10.1.0.1' })]);
  const total = (): [number, boolean] => [chains('bare.shop').tls, chains('bare.shop').plain > 0];
  expect(total()).toEqual([0, true]);
  lab.apply([peers('shop/p', 'STRICT')]);
  expect(total()).toEqual([0, false]);
  expect(lab.faults('bare.shop')).toEqual([]);
  lab.apply([peers('shop/p', 'DISABLE')]);
  expect(total()).toEqual([0, true]);
});

test('a port of its own mode is apart from the others', () => {
  const strictBut = { selector, portLevelMtls: { 8080: { mode: 'DISABLE' } } };
  lab.apply([peers('shop/p', 'STRICT', strictBut)]);
  const listeners = lab.json('a.shop').lds as { readonly name: string; readonly filterChains?: readonly Chain[] }[];
  const served = listeners.find(({ name }) => name === 'virtualInbound')!.filterChains!;
  const plain = served.filter(
    (chain) => chain.transportSocket === undefined && chain.name !== 'virtualInbound-blackhole',
  );
  expect(new Set(plain.map(({ filterChainMatch }) => filterChainMatch?.destinationPort))).toEqual(new Set([8080]));
});

test('a selector in the root namespace is ignored for what is there, too', () => {
  lab.join([proxy('a.istio-system', { app: 'a' }, { ...agent, INSTANCE_IPS: '10.1.0.3' })]);
  const before = chains('a.istio-system');
  expect(before.plain).toBeGreaterThan(0);
  lab.apply([peers('istio-system/p', 'STRICT', { selector })]);
  expect(chains('a.istio-system')).toEqual(before);
});

test('while a mode changes, the server accepts both kinds of connections, and clients follow later', () => {
  const { inputs } = lab.mesh;
  const key = 'Kubernetes/shop/p';
  const old = peers('shop/p', 'DISABLE', { selector });
  const now = peers('shop/p', 'STRICT', { selector });
  /** What clients use, and what the server accepts. */
  const state = () => {
    const { tls, plain } = chains('a.shop');
    return [secured().includes(a80!) ? 'tls' : 'plain', ...(tls > 0 ? ['tls'] : []), ...(plain > 0 ? ['plain'] : [])];
  };
  lab.apply([old]);
  expect(state()).toEqual(['plain', 'plain']);
  const former = { object: old };
  lab.commit([
    inputs.objects.PeerAuthentication.write(key, now),
    inputs.formerPeersOfClients.write(key, former),
    inputs.formerPeersOfServers.write(key, former),
  ]);
  expect(state()).toEqual(['plain', 'tls', 'plain']);
  lab.commit([inputs.formerPeersOfClients.write(key, undefined)]);
  expect(state()).toEqual(['tls', 'tls', 'plain']);
  lab.commit([inputs.formerPeersOfServers.write(key, undefined)]);
  expect(state()).toEqual(['tls', 'tls']);
  // Deleted, where all else is DISABLE.
  lab.apply([peers('shop/n', 'DISABLE')]);
  lab.commit([
    inputs.objects.PeerAuthentication.write(key, undefined),
    inputs.formerPeersOfClients.write(key, { object: now }),
    inputs.formerPeersOfServers.write(key, { object: now }),
  ]);
  expect(state()).toEqual(['tls', 'tls', 'plain']);
  lab.commit([inputs.formerPeersOfClients.write(key, undefined), inputs.formerPeersOfServers.write(key, undefined)]);
  expect(state()).toEqual(['plain', 'plain']);
  // Created.
  lab.commit([
    inputs.objects.PeerAuthentication.write(key, now),
    inputs.formerPeersOfClients.write(key, {}),
    inputs.formerPeersOfServers.write(key, {}),
  ]);
  expect(state()).toEqual(['plain', 'tls', 'plain']);
});
