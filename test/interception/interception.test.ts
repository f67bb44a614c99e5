import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { whyNoNetworks } from '../e2e/networks.ts';
import { withPeers } from '../peers/with-peers.ts';
import { type Dial, Lab, type Via, addresses, names, peer, pod } from './lab.ts';

const reason = whyNoNetworks();

/** A request, what it is answered, and which listeners of the proxy it has passed. */
interface Case extends Dial {
  readonly title: string;
  readonly answer: string;
  readonly via: Via;
}

type Destination = 'pod' | 'pod6' | 'peer' | 'peer6';

const places: Readonly<Record<Destination, readonly [name: string, address: string]>> = {
  pod: ['pod', pod.ip],
  pod6: ['pod', pod.ip6],
  peer: ['peer', peer.ip],
  peer6: ['peer', peer.ip6],
};

/** Whoever it passes, a request is answered by the one it is for. */
function dials(title: string, who: Dial['who'], to: Destination, port: number, via: Via): Case {
  const [name, address] = places[to];
  return { title, who, to: address, port, answer: `${name}:${port}`, via };
}

function usual(family: '' | '6'): Case[] {
  const [own, other]: readonly [Destination, Destination] = [`pod${family}`, `peer${family}`];
  const [loopback, passthrough] = family === '' ? ['127.0.0.1', '127.0.0.6'] : ['::1', '::6'];
  return [
    dials('an application dials out', 'app', other, 8080, 'outbound'),
    dials('the proxy dials out', 'proxy', other, 8080, 'nothing'),
    dials("something in the proxy's group dials out", 'group', other, 8080, 'nothing'),
    dials('an application dials its own Pod', 'app', own, 8080, 'nothing'),
    dials('the proxy dials its own Pod', 'proxy', own, 8080, 'inbound'),
    dials('the proxy dials a tunnel to its own Pod', 'proxy', own, 15008, 'nothing'),
    dials("something in the proxy's group dials its own Pod", 'group', own, 8080, 'nothing'),
    { ...dials('an application dials loopback', 'app', own, 8080, 'nothing'), to: loopback },
    { ...dials('the proxy dials loopback', 'proxy', own, 8080, 'nothing'), to: loopback },
    { ...dials('the proxy hands a connection over', 'proxy', own, 8080, 'nothing'), from: passthrough },
    dials('a peer dials a port', 'peer', own, 8080, 'inbound'),
    dials('a peer dials another port', 'peer', own, 9999, 'inbound'),
    dials('a peer probes readiness', 'peer', own, 15021, 'nothing'),
    dials('a peer dials a tunnel', 'peer', own, 15008, 'nothing'),
  ];
}

const own = ['-d', '15090,15021,15020'];

/** Flags, and requests that they change or must leave alone. */
const options: readonly { readonly flags: readonly string[]; readonly cases: readonly Case[] }[] = [
  {
    flags: ['-b', '8080'],
    cases: [
      dials('a port of the list', 'peer', 'pod', 8080, 'inbound'),
      dials('another port', 'peer', 'pod6', 9999, 'nothing'),
    ],
  },
  { flags: ['-b', ''], cases: [dials('nothing that comes in', 'peer', 'pod', 8080, 'nothing')] },
  {
    flags: ['-d', '9999'],
    cases: [
      dials('not the excluded port', 'peer', 'pod', 9999, 'nothing'),
      dials('the others', 'peer', 'pod', 8080, 'inbound'),
    ],
  },
  {
    flags: ['-x', '10.99.0.0/24,fd99::1'],
    cases: [
      dials('not an excluded range', 'app', 'peer', 8080, 'nothing'),
      dials('not an excluded address', 'app', 'peer6', 8080, 'nothing'),
    ],
  },
  {
    flags: ['-i', '10.99.0.0/24'],
    cases: [
      dials('a range of the list', 'app', 'peer', 8080, 'outbound'),
      dials('another range', 'app', 'peer6', 8080, 'nothing'),
    ],
  },
  {
    flags: ['-i', '', '-q', '9999'],
    cases: [
      dials('a port whatever the range', 'app', 'peer', 9999, 'outbound'),
      dials('no other port', 'app', 'peer', 8080, 'nothing'),
    ],
  },
  {
    flags: ['-o', '8080'],
    cases: [
      dials('not the excluded port', 'app', 'peer', 8080, 'nothing'),
      dials('the others', 'app', 'peer', 9999, 'outbound'),
    ],
  },
  {
    flags: ['-c', 'eth+'],
    cases: [
      dials('nothing that goes out by the interface', 'app', 'peer', 8080, 'nothing'),
      dials('nothing that comes in by it', 'peer', 'pod', 8080, 'nothing'),
    ],
  },
  {
    flags: ['-k', 'eth0'],
    cases: [
      // Its destination is this Pod: the proxy calls it as any other.
      dials('what comes from a virtual machine goes out', 'peer', 'pod', 8080, 'outbound and inbound'),
    ],
  },
  {
    flags: ['--owner-groups', '1000'],
    cases: [dials('what a group of the list dials', 'app', 'peer', 8080, 'outbound')],
  },
  {
    flags: ['--owner-groups-exclude', '1000'],
    cases: [dials('not what an excluded group dials', 'app', 'peer', 8080, 'nothing')],
  },
  {
    flags: ['--families', 'ipv4'],
    cases: [
      dials('the family of the proxy', 'app', 'peer', 8080, 'outbound'),
      dials('not the other one', 'app', 'peer6', 8080, 'nothing'),
      dials('nor what comes in by it', 'peer', 'pod6', 8080, 'nothing'),
    ],
  },
  { flags: ['--drop-invalid'], cases: [dials('as usual', 'peer', 'pod', 8080, 'inbound')] },
];

const { shared, other } = names;
const { byAgent, byServer } = addresses;
const dns: readonly Case[] = (['udp', 'tcp'] as const).flatMap((protocol) => {
  const asks = (title: string, who: Dial['who'], to: string, name: string, answer: string): Case => ({
    ...{ title: `${protocol}: ${title}`, who, to, port: 53, protocol, name, answer, via: 'nothing' },
  });
  return [
    asks('an application asks its server', 'app', peer.ip, shared, byAgent),
    asks('also over IPv6', 'app', peer.ip6, shared, byAgent),
    asks('what the agent does not know, it asks the server', 'app', peer.ip, other, addresses.other),
    asks('the agent asks the server', 'proxy', peer.ip, shared, byServer),
  ];
});

const otherServer: Case = {
  ...{ title: 'another server, over TCP as any other connection', who: 'app', to: '10.99.0.3', port: 53 },
  ...{ protocol: 'tcp', name: shared, answer: byServer, via: 'outbound' },
};

withPeers(['nft', 'envoy'], `interception in a network namespace${reason === undefined ? '' : ` (${reason})`}`, () => {
  describe.skipIf(reason !== undefined)('has rules by which', () => {
    let lab: Lab;
    beforeAll(async () => {
      lab = await Lab.start();
    });
    afterAll(() => lab.stop());
    afterEach(() => lab.clear());

    const check = async (cases: readonly Case[]): Promise<void> => {
      const print = (title: string, answer: string, via: Via): string => `${title}: ${answer} by way of ${via}`;
      const found: string[] = [];
      for (const each of cases) {
        const { answer, via } = await lab.dial(each);
        found.push(print(each.title, answer, via));
      }
      expect(found).toEqual(cases.map(({ title, answer, via }) => print(title, answer, via)));
    };

    test.each([...options, { flags: own, cases: [...usual(''), ...usual('6')] }])(
      'with nft, $flags',
      async ({ flags, cases }) => {
        expect(await lab.intercept(...flags)).toContain('applied with nft');
        await check(cases);
      },
    );

    const restore = async (flags: readonly string[]): Promise<void> => {
      for (const [family, program] of [
        ['ipv4', 'iptables-nft-restore'],
        ['ipv6', 'ip6tables-nft-restore'],
      ] as const)
        await lab.restore(program, await lab.intercept(...flags, '--print', 'iptables', '--families', family));
    };

    test.each([
      ...options.filter(({ flags }) => flags[0] !== '--families'),
      { flags: own, cases: [...usual(''), ...usual('6')] },
      { flags: ['--capture-all-dns'], cases: dns },
    ])('with iptables, $flags', async ({ flags, cases }) => {
      await restore(flags);
      await check(cases);
    });

    test('requests for names go to the agent, if the server is that of the Pod', async () => {
      await lab.interceptWithServers([peer.ip, peer.ip6]);
      await check([...dns, otherServer]);
    });

    test('requests for names go to the agent, whatever the server', async () => {
      await lab.intercept('--capture-all-dns');
      await check([...dns, { ...otherServer, answer: byAgent, via: 'nothing' }]);
    });

    test('a second run changes nothing, and one with other options replaces the rules', async () => {
      await lab.intercept(...own);
      const before = await lab.rules();
      await lab.intercept(...own);
      expect(await lab.rules()).toBe(before);
      await lab.intercept('-b', '8080');
      expect(await lab.rules()).not.toContain('15021');
    });

    test('the mode NONE has no rules', async () => {
      await lab.intercept('-m', 'NONE');
      expect(await lab.rules()).toBe('');
    });
  });
});
