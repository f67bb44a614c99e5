import { expect, test } from 'vitest';
import type { Endpoint } from '../model/endpoint.ts';
import type { MeshService } from '../model/service.ts';
import { namedHosts } from './named-hosts.ts';

const service = (more: Partial<MeshService>): MeshService => ({
  host: 'db.shop.svc.cluster.local',
  name: 'db',
  namespace: 'shop',
  createdAt: '',
  registry: 'Kubernetes',
  resolution: 'ClientSideLB',
  ports: [{ name: 'tcp', number: 80, protocol: 'TCP' }],
  addresses: ['0.0.0.0'],
  autoAddresses: [],
  exportTo: ['*'],
  meshExternal: false,
  persistentSession: false,
  translatesPorts: false,
  endpoints: [],
  subjectAltNames: [],
  nodeLocal: false,
  aliases: [],
  raceConnect: false,
  origins: [],
  ...more,
});

const endpoint = (address: string, more: Partial<Endpoint> = {}): Endpoint => ({
  addresses: [address],
  port: 80,
  portName: 'tcp',
  health: 'Healthy',
  labels: {},
  locality: '',
  network: '',
  cluster: '',
  identity: '',
  tlsMode: 'disabled',
  workload: '',
  namespace: 'shop',
  nodeName: '',
  ...more,
});

type Family = 'v4' | 'v6' | 'dual';

function names(
  of: Partial<MeshService>,
  endpoints: readonly Endpoint[] = [],
  ipFamily: Family = 'v4',
  dnsCapture = true,
  place = { cluster: 'east', network: '' },
) {
  const found = namedHosts(service(of), () => endpoints, { traits: { ipFamily, dnsCapture, cluster: '' }, ...place });
  return Object.fromEntries(found.map(({ host, addresses }) => [host, addresses.join()]));
}

const DB = 'db.shop.svc.cluster.local';
const headless = { resolution: 'Passthrough' } as const;
const external = { registry: 'External', host: 'x.com', name: 'x.com', resolution: 'DNSLB' } as const;

test.each<[what: string, found: Record<string, string>, expected: Record<string, string>]>([
  ['a Service by its address', names({ addresses: ['10.96.0.1'] }), { [DB]: '10.96.0.1' }],
  [
    'a dual-stack Service by that of the family',
    names({ addresses: ['10.96.0.1', 'fd00::1'] }, [], 'v6'),
    { [DB]: 'fd00::1' },
  ],
  [
    'a ServiceEntry by all its addresses, not by ranges',
    names({ ...external, addresses: ['192.0.2.1', 'fd00:0::1', '10.0.0.0/8'] }),
    { 'x.com': '192.0.2.1,fd00::1' },
  ],
  [
    'an automatic address',
    names({ ...external, autoAddresses: ['2001:2::1', '240.240.0.1'] }),
    { 'x.com': '240.240.0.1' },
  ],
  [
    'both for a client of both families',
    names({ ...external, autoAddresses: ['2001:2::1', '240.240.0.1'] }, [], 'dual'),
    { 'x.com': '2001:2::1,240.240.0.1' },
  ],
  ['none without capture', names({ ...external, autoAddresses: ['240.240.0.1'] }, [], 'v4', false), {}],
  [
    'a Pod that serves two ports once',
    names(headless, [endpoint('10.0.0.1'), endpoint('10.0.0.1', { portName: 'b' })]),
    { [DB]: '10.0.0.1' },
  ],
  [
    'Pods by their names, too',
    names(headless, [endpoint('10.0.0.1', { hostname: 'DB-0' })]),
    { [DB]: '10.0.0.1', [`db-0.${DB}`]: '10.0.0.1' },
  ],
  [
    'no Pods that are not ready, or leave',
    names(headless, [
      endpoint('10.0.0.1', { health: 'UnHealthy' }),
      endpoint('10.0.0.2', { health: 'Terminating' }),
      endpoint('10.0.0.3'),
    ]),
    { [DB]: '10.0.0.3' },
  ],
  [
    'all Pods if the Service publishes those that are not ready',
    names({ ...headless, publishesNotReady: true }, [
      endpoint('10.0.0.1', { health: 'UnHealthy' }),
      endpoint('10.0.0.3'),
    ]),
    { [DB]: '10.0.0.1,10.0.0.3' },
  ],
  [
    'Pods of other clusters, but not of other networks',
    names(
      headless,
      [
        endpoint('10.0.0.1', { network: 'one' }),
        endpoint('10.0.0.2', { network: 'one', cluster: 'west' }),
        endpoint('10.0.0.3', { network: 'two', cluster: 'west' }),
        endpoint('10.0.0.4', { cluster: 'west' }),
      ],
      'v4',
      true,
      { cluster: 'east', network: 'one' },
    ),
    { [DB]: '10.0.0.1,10.0.0.2,10.0.0.4' },
  ],
  [
    'a name in several clusters as that of the own one',
    names(headless, [
      endpoint('10.0.0.1', { cluster: 'east', hostname: 'db-0' }),
      endpoint('10.0.0.2', { cluster: 'west', hostname: 'db-0' }),
      endpoint('10.0.0.3', { cluster: 'west', hostname: 'db-1' }),
    ]),
    { [DB]: '10.0.0.1,10.0.0.2,10.0.0.3', [`db-0.${DB}`]: '10.0.0.1', [`db-1.${DB}`]: '10.0.0.3' },
  ],
  ['a Service of the other family not at all', names({ addresses: ['fd00::1'] }), {}],
  ['no sockets', names(headless, [endpoint('/run/x.sock')]), {}],
  ['a headless Service without Pods not at all', names(headless), {}],
  ['nothing for ranges alone', names({ ...headless, addresses: ['10.0.0.0/8'] }, [endpoint('10.0.0.1')]), {}],
])('%s', (_, found, expected) => expect(found).toEqual(expected));
