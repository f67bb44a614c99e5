import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { withPeers } from '../peers/with-peers.ts';
import { type Dial, Lab, peer, pod, whyNoLab } from './lab.ts';

const reason = whyNoLab();

/** A connection, and who answers it: a listener of the Pod or of the peer. */
interface Case extends Dial {
  readonly title: string;
  readonly answer: string;
}

/** The proxy's ports are 15001 for what goes out and 15006 for what comes in. */
function usual(family: 'ip' | 'ip6'): Case[] {
  const own = pod[family];
  const other = peer[family];
  const [loopback, passthrough] = family === 'ip' ? ['127.0.0.1', '127.0.0.6'] : ['::1', '::6'];
  return [
    { title: 'an application dials out', who: 'app', to: other, port: 8080, answer: 'pod:15001' },
    { title: 'the proxy dials out', who: 'proxy', to: other, port: 8080, answer: 'peer:8080' },
    { title: "something in the proxy's group dials out", who: 'group', to: other, port: 8080, answer: 'peer:8080' },
    { title: 'an application dials its own Pod', who: 'app', to: own, port: 8080, answer: 'pod:8080' },
    { title: 'the proxy dials its own Pod', who: 'proxy', to: own, port: 8080, answer: 'pod:15006' },
    { title: 'the proxy dials a tunnel to its own Pod', who: 'proxy', to: own, port: 15008, answer: 'pod:15008' },
    {
      title: "something in the proxy's group dials its own Pod",
      who: 'group',
      to: own,
      port: 8080,
      answer: 'pod:8080',
    },
    { title: 'an application dials loopback', who: 'app', to: loopback, port: 8080, answer: 'pod:8080' },
    { title: 'the proxy dials loopback', who: 'proxy', to: loopback, port: 8080, answer: 'pod:8080' },
    {
      title: 'the proxy hands a connection over',
      ...{ who: 'proxy', from: passthrough, to: own, port: 8080, answer: 'pod:8080' },
    },
    { title: 'a peer dials a port', who: 'peer', to: own, port: 8080, answer: 'pod:15006' },
    { title: 'a peer dials another port', who: 'peer', to: own, port: 9999, answer: 'pod:15006' },
    { title: 'a peer probes readiness', who: 'peer', to: own, port: 15021, answer: 'pod:15021' },
    { title: 'a peer dials a tunnel', who: 'peer', to: own, port: 15008, answer: 'pod:15008' },
  ];
}

const own = ['-d', '15090,15021,15020'];

/** Flags, and connections that they change or must leave alone. */
const options: readonly { readonly flags: readonly string[]; readonly cases: readonly Case[] }[] = [
  {
    flags: ['-b', '8080'],
    cases: [
      { title: 'a port of the list', who: 'peer', to: pod.ip, port: 8080, answer: 'pod:15006' },
      { title: 'another port', who: 'peer', to: pod.ip6, port: 9999, answer: 'pod:9999' },
    ],
  },
  {
    flags: ['-b', ''],
    cases: [{ title: 'nothing that comes in', who: 'peer', to: pod.ip, port: 8080, answer: 'pod:8080' }],
  },
  {
    flags: ['-d', '9999'],
    cases: [
      { title: 'not the excluded port', who: 'peer', to: pod.ip, port: 9999, answer: 'pod:9999' },
      { title: 'the others', who: 'peer', to: pod.ip, port: 8080, answer: 'pod:15006' },
    ],
  },
  {
    flags: ['-x', '10.99.0.0/24,fd99::1'],
    cases: [
      { title: 'not an excluded range', who: 'app', to: peer.ip, port: 8080, answer: 'peer:8080' },
      { title: 'not an excluded address', who: 'app', to: peer.ip6, port: 8080, answer: 'peer:8080' },
    ],
  },
  {
    flags: ['-i', '10.99.0.0/24'],
    cases: [
      { title: 'a range of the list', who: 'app', to: peer.ip, port: 8080, answer: 'pod:15001' },
      { title: 'another range', who: 'app', to: peer.ip6, port: 8080, answer: 'peer:8080' },
    ],
  },
  {
    flags: ['-i', '', '-q', '9999'],
    cases: [
      { title: 'a port whatever the range', who: 'app', to: peer.ip, port: 9999, answer: 'pod:15001' },
      { title: 'no other port', who: 'app', to: peer.ip, port: 8080, answer: 'peer:8080' },
    ],
  },
  {
    flags: ['-o', '8080'],
    cases: [
      { title: 'not the excluded port', who: 'app', to: peer.ip, port: 8080, answer: 'peer:8080' },
      { title: 'the others', who: 'app', to: peer.ip, port: 9999, answer: 'pod:15001' },
    ],
  },
  {
    flags: ['-c', 'eth+'],
    cases: [
      { title: 'nothing that goes out by the interface', who: 'app', to: peer.ip, port: 8080, answer: 'peer:8080' },
      { title: 'nothing that comes in by it', who: 'peer', to: pod.ip, port: 8080, answer: 'pod:8080' },
    ],
  },
  {
    flags: ['-k', 'eth0'],
    cases: [
      { title: 'what comes from a virtual machine goes out', who: 'peer', to: pod.ip, port: 8080, answer: 'pod:15001' },
    ],
  },
  {
    flags: ['--owner-groups', '1000'],
    cases: [{ title: 'what a group of the list dials', who: 'app', to: peer.ip, port: 8080, answer: 'pod:15001' }],
  },
  {
    flags: ['--owner-groups-exclude', '1000'],
    cases: [{ title: 'not what an excluded group dials', who: 'app', to: peer.ip, port: 8080, answer: 'peer:8080' }],
  },
  {
    flags: ['--families', 'ipv4'],
    cases: [
      { title: 'the family of the proxy', who: 'app', to: peer.ip, port: 8080, answer: 'pod:15001' },
      { title: 'not the other one', who: 'app', to: peer.ip6, port: 8080, answer: 'peer:8080' },
      { title: 'nor what comes in by it', who: 'peer', to: pod.ip6, port: 8080, answer: 'pod:8080' },
    ],
  },
  {
    flags: ['--drop-invalid'],
    cases: [{ title: 'as usual', who: 'peer', to: pod.ip, port: 8080, answer: 'pod:15006' }],
  },
];

const dns: readonly Case[] = (['udp', undefined] as const).flatMap((protocol) => {
  const by = protocol === undefined ? {} : { protocol };
  const name = protocol ?? 'tcp';
  return [
    { title: `${name}: an application asks its server`, who: 'app', to: peer.ip, port: 53, answer: 'pod:15053', ...by },
    { title: `${name}: also over IPv6`, who: 'app', to: peer.ip6, port: 53, answer: 'pod:15053', ...by },
    { title: `${name}: the agent asks the server`, who: 'proxy', to: peer.ip, port: 53, answer: 'peer:53', ...by },
  ] as const satisfies Case[];
});

const otherServer: Case = {
  title: 'another server, over TCP as any other connection',
  who: 'app',
  to: '10.99.0.3',
  port: 53,
  answer: 'pod:15001',
};

withPeers(['nft'], `interception in a network namespace${reason === undefined ? '' : ` (${reason})`}`, () => {
  describe.skipIf(reason !== undefined)('has rules by which', () => {
    let lab: Lab;
    beforeAll(async () => {
      lab = await Lab.start();
    });
    afterAll(() => lab.stop());
    afterEach(() => lab.clear());

    const check = async (cases: readonly Case[]): Promise<void> => {
      const answers: string[] = [];
      for (const each of cases) answers.push(`${each.title}: ${await lab.dial(each)}`);
      expect(answers).toEqual(cases.map(({ title, answer }) => `${title}: ${answer}`));
    };

    test.each([...options, { flags: own, cases: [...usual('ip'), ...usual('ip6')] }])(
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
      { flags: own, cases: [...usual('ip'), ...usual('ip6')] },
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
      await check([...dns, { ...otherServer, answer: 'pod:15053' }]);
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
