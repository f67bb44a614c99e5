import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { on, once } from 'node:events';
import { connect } from 'node:net';
import packet from 'dns-packet';
import { expect, onTestFinished, test } from 'vitest';
import { startDnsServer } from './dns-server.ts';
import { type HostChange, Names } from './names.ts';
import { Responder } from './responder.ts';
import { Upstream } from './upstream.ts';

const bytes = (...parts: readonly (readonly number[])[]): Uint8Array => Uint8Array.from(parts.flat());
const NONE = new Uint8Array();
const v6 = [0x20, 0x01, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

const hosts: readonly HostChange[] = [
  ['api.example.com', { v4: bytes([240, 240, 0, 1]), v6: bytes(v6), isShort: false }],
  ['v4.example.com', { v4: bytes([10, 0, 0, 1], [10, 0, 0, 2]), v6: NONE, isShort: false }],
  ['reviews.shop.svc.cluster.local', { v4: bytes([10, 96, 0, 1]), v6: NONE, isShort: true }],
  [
    'many.shop.svc.cluster.local',
    {
      v4: bytes(
        Array.from({ length: 4_000 }, (_, i) => [10, 1, i >> 4, i & 15])
          .flat()
          .slice(0, 4_000),
      ),
      v6: NONE,
      isShort: true,
    },
  ],
];

interface Lab {
  readonly port: number;
  readonly names: Names;
  readonly responder: Responder;
}

/** A server with the hosts above, in front of others. */
async function lab(
  upstream: { readonly servers: readonly string[]; readonly port: number; readonly timeoutMs?: number },
  loaded = true,
): Promise<Lab> {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const names = new Names({ namespace: 'shop', domain: 'cluster.local', search: 'shop.svc.cluster.local' });
  if (loaded) names.apply(hosts);
  const responder = new Responder({
    names,
    upstream: new Upstream({ ...upstream, random: Math.random }),
    random: Math.random,
  });
  const port = await startDnsServer({ addresses: ['127.0.0.1', '::1'], port: 0, responder, signal: end.signal });
  return { port, names, responder };
}

const nowhere = { servers: [], port: 53 };

function resolverOf(port: number, address = '127.0.0.1'): Resolver {
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`${address.includes(':') ? `[${address}]` : address}:${port}`]);
  return resolver;
}

test.each(['127.0.0.1', '::1'])('c-ares gets both families over UDP from %s', async (address) => {
  const { port } = await lab(nowhere);
  const resolver = resolverOf(port, address);
  expect(await resolver.resolve4('api.example.com', { ttl: true })).toEqual([{ address: '240.240.0.1', ttl: 30 }]);
  expect(await resolver.resolve6('api.example.com')).toEqual(['2001:2::1']);
  expect(await resolver.resolve4('Reviews.shop')).toEqual(['10.96.0.1']);
  expect(await resolver.resolve4('api.example.com.shop.svc.cluster.local')).toEqual(['240.240.0.1']);
});

test('a known name without addresses of the family exists, and has no data', async () => {
  const { port } = await lab(nowhere);
  await expect(resolverOf(port).resolve6('v4.example.com')).rejects.toMatchObject({ code: 'ENODATA' });
});

test('an answer that is too long for UDP is cut, and c-ares gets the rest over TCP', async () => {
  const { port } = await lab(nowhere);
  const cut = await askUdp(port, query('many.shop.svc.cluster.local'));
  expect(cut.flag_tc).toBe(true);
  expect(cut.answers!.length).toBe(Math.floor((512 - 12 - 33) / 16));
  const longer = await askUdp(port, query('many.shop.svc.cluster.local', 1_232));
  expect(longer.answers!.length).toBe(Math.floor((1_232 - 12 - 33 - 11) / 16));
  expect(longer.additionals).toMatchObject([{ type: 'OPT' }]);
  const all = await resolverOf(port).resolve4('many.shop.svc.cluster.local');
  expect(new Set(all).size).toBe(1_000);
});

test('the CNAME says what a name with a search domain stands for', async () => {
  const { port } = await lab(nowhere);
  const {
    answers,
    questions,
    flag_aa: authoritative,
  } = await askUdp(port, query('API.example.com.shop.svc.cluster.local'));
  expect(questions).toMatchObject([{ name: 'API.example.com.shop.svc.cluster.local' }]);
  expect(authoritative).toBe(true);
  expect(answers).toMatchObject([
    { type: 'CNAME', name: 'API.example.com.shop.svc.cluster.local', data: 'API.example.com' },
    { type: 'A', name: 'API.example.com', data: '240.240.0.1' },
  ]);
});

test('addresses are in another order each time', async () => {
  const { port } = await lab(nowhere);
  const resolver = resolverOf(port);
  const seen = new Set<string>();
  for (let i = 0; i < 100 && seen.size < 2; i++) seen.add((await resolver.resolve4('v4.example.com')).join());
  expect(seen.size).toBe(2);
});

test('other names and other types go to the other servers, by the protocol that they came with', async () => {
  const other = await otherServer();
  const { port, responder } = await lab({ servers: ['127.0.0.1'], port: other.port });
  const resolver = resolverOf(port);
  expect(await resolver.resolve4('www.example.net')).toEqual(['192.0.2.53']);
  expect(await resolver.resolveTxt('api.example.com')).toEqual([['from elsewhere']]);
  expect((await askTcp(port, query('www.example.net'))).answers).toMatchObject([{ data: '192.0.2.53' }]);
  expect(other.protocols).toEqual(['udp', 'udp', 'tcp']);
  expect(responder.counts()).toMatchObject({ forwarded: 3, unanswered: 0, answered: 0 });
});

test('if one server does not answer, the next is asked; if none does, the query fails', async () => {
  const other = await otherServer();
  const silent = await silentServer('127.0.0.2', other.port);
  const { port } = await lab({ servers: ['127.0.0.2', '127.0.0.1'], port: other.port, timeoutMs: 50 });
  for (let i = 0; i < 10; i++) expect(await resolverOf(port).resolve4('www.example.net')).toEqual(['192.0.2.53']);
  const alone = await lab({ servers: ['127.0.0.2'], port: other.port, timeoutMs: 50 });
  expect(rcodeOf(await askUdp(alone.port, query('www.example.net')))).toBe('SERVFAIL');
  expect(alone.responder.counts()).toMatchObject({ forwarded: 1, unanswered: 1 });
  expect(silent.received()).toBeGreaterThan(0);
});

test('before the first table, only what leads to it is looked up', async () => {
  const other = await otherServer();
  const { port, names, responder } = await lab({ servers: ['127.0.0.1'], port: other.port }, false);
  expect(rcodeOf(await askUdp(port, query('api.example.com')))).toBe('SERVFAIL');
  expect(rcodeOf(await askUdp(port, query('www.example.net')))).toBe('SERVFAIL');
  expect(responder.counts()).toMatchObject({ early: 2 });
  names.apply([]);
  expect(await resolverOf(port).resolve4('www.example.net')).toEqual(['192.0.2.53']);
});

test('what cannot be read is dropped and counted, and the server goes on', async () => {
  const { port, responder } = await lab(nowhere);
  const good = query('api.example.com');
  const hostile = [
    Buffer.alloc(0),
    Buffer.alloc(11),
    good.subarray(0, 20),
    good.subarray(0, -1),
    // An answer.
    Buffer.from(good).fill(0x80, 2, 3),
    // Two questions; none; as many additional records as there can be.
    changed(good, 4, 0, 2),
    changed(good, 4, 0, 0),
    changed(good, 10, 0xff, 0xff),
    // A name that points to itself; beyond the message; a label that is too long.
    changed(good, 12, 0xc0, 12),
    changed(good, 12, 0xc1, 0xff),
    changed(good, 12, 0x80, 1),
    Buffer.concat([good.subarray(0, 12), Buffer.from('\x3f'.padEnd(64, 'a').repeat(5) + '\0\0\x01\0\x01')]),
  ];
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  const answers = on(socket, 'message') as AsyncIterableIterator<[Buffer]>;
  /** Datagrams of one socket to another stay in order on loopback: its answer comes after all messages before. */
  const probe = async (id: number): Promise<void> => {
    const message = Buffer.from(good);
    message.writeUInt16BE(id);
    socket.send(message, port, '127.0.0.1');
    for (;;) {
      const { value } = (await answers.next()) as { readonly value: [Buffer] };
      if (value[0].readUInt16BE(0) === id) return;
    }
  };
  for (const message of hostile) socket.send(message, port, '127.0.0.1');
  await probe(1_000);
  expect(responder.counts().malformed).toBe(hostile.length);
  for (let seed = 1; seed <= 500; seed++) {
    socket.send(mutated(good, seed), port, '127.0.0.1');
    // The socket has room for some hundreds.
    if (seed % 50 === 0) await probe(1_000 + seed);
  }
  expect(await resolverOf(port).resolve4('api.example.com')).toEqual(['240.240.0.1']);
});

test('an opcode that is not supported is answered so', async () => {
  const { port } = await lab(nowhere);
  expect(rcodeOf(await askUdp(port, changed(query('api.example.com'), 2, 0x28, 0)))).toBe('NOTIMP');
});

test('a connection that announces more than a query can have is closed, and others are served', async () => {
  const { port } = await lab(nowhere);
  const socket = connect(port, '127.0.0.1');
  socket.write(Buffer.from([0xff, 0xff, 1, 2, 3]));
  await once(socket, 'close');
  expect((await askTcp(port, query('api.example.com'))).answers).toMatchObject([{ data: '240.240.0.1' }]);
});

test('queries on one connection that come in one piece, or byte by byte, are all answered', async () => {
  const { port } = await lab(nowhere);
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  onTestFinished(() => void socket.destroy());
  const framed = Buffer.concat([framedOf(query('api.example.com')), framedOf(query('v4.example.com'))]);
  socket.write(framed);
  for (const byte of framed) socket.write(Buffer.of(byte));
  let received = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>)
    if ((received += chunk.length) >= 2 * (2 + 49 + 2 + 64)) break;
  expect(received).toBe(2 * (2 + 49 + 2 + 64));
});

test('a port that is taken is an error', async () => {
  const { port, responder } = await lab(nowhere);
  const { signal } = new AbortController();
  await expect(startDnsServer({ addresses: ['127.0.0.1'], port, responder, signal })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
});

test('an address that the machine does not have is left out, unless it is the only one', async () => {
  const { responder } = await lab(nowhere);
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const options = { port: 0, responder, signal: end.signal };
  expect(await startDnsServer({ ...options, addresses: ['192.0.2.1', '127.0.0.1'] })).toBeGreaterThan(0);
  await expect(startDnsServer({ ...options, addresses: ['192.0.2.1'] })).rejects.toMatchObject({
    code: 'EADDRNOTAVAIL',
  });
});

test('a name server to which there is no route costs its answers, not the agent', async () => {
  // No socket can be connected to the address of all hosts of the link.
  const { port } = await lab({ servers: ['255.255.255.255'], port: 53, timeoutMs: 1_000 });
  expect(rcodeOf(await askUdp(port, query('elsewhere.example.com')))).toBe('SERVFAIL');
});

function query(name: string, udpPayloadSize?: number): Buffer {
  return packet.encode({
    type: 'query',
    id: 0x1234,
    flags: packet.RECURSION_DESIRED,
    questions: [{ type: 'A', name }],
    ...(udpPayloadSize !== undefined && {
      additionals: [
        {
          type: 'OPT',
          name: '.',
          udpPayloadSize,
          flags: 0,
          options: [],
          extendedRcode: 0,
          ednsVersion: 0,
          flag_do: false,
        },
      ],
    }),
  });
}

function changed(message: Buffer, at: number, ...values: readonly number[]): Buffer {
  const copy = Buffer.from(message);
  copy.set(values, at);
  return copy;
}

/** Some bytes are others; the same for the same seed. */
function mutated(message: Buffer, seed: number): Buffer {
  const copy = Buffer.from(message);
  for (let i = 0, state = seed; i < 4; i++) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    copy[12 + (state % (copy.length - 12))] = state >> 16;
  }
  // Not an id that the last message has.
  copy.writeUInt16BE(seed, 0);
  return copy;
}

const framedOf = (message: Buffer): Buffer =>
  Buffer.concat([Buffer.of(message.length >> 8, message.length & 0xff), message]);

/** Missing in the types. */
const rcodeOf = (response: packet.DecodedPacket): string => (response as { readonly rcode?: string }).rcode ?? '';

async function askUdp(port: number, message: Buffer): Promise<packet.DecodedPacket> {
  const socket = createSocket('udp4');
  try {
    const answered = once(socket, 'message');
    socket.send(message, port, '127.0.0.1');
    const [response] = (await answered) as [Buffer];
    return packet.decode(response);
  } finally {
    socket.close();
  }
}

async function askTcp(port: number, message: Buffer): Promise<packet.DecodedPacket> {
  const socket = connect(port, '127.0.0.1');
  socket.write(framedOf(message));
  let received: Buffer = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received = Buffer.concat([received, chunk]);
    if (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) break;
  }
  return packet.decode(received.subarray(2));
}

/** Knows every name. */
async function otherServer(): Promise<{ readonly port: number; readonly protocols: string[] }> {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const protocols: string[] = [];
  const port = await startDnsServer({
    addresses: ['127.0.0.1'],
    port: 0,
    signal: end.signal,
    responder: {
      respond(message, protocol) {
        protocols.push(protocol);
        const { id, questions = [] } = packet.decode(Buffer.from(message));
        const [{ name, type } = { name: '', type: 'A' }] = questions;
        const data = type === 'TXT' ? 'from elsewhere' : '192.0.2.53';
        return packet.encode({
          type: 'response',
          id: id!,
          questions,
          answers: [{ type, name, data } as packet.Answer],
        });
      },
    },
  });
  return { port, protocols };
}

async function silentServer(address: string, port: number): Promise<{ received(): number }> {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  let count = 0;
  socket.on('message', () => count++);
  socket.bind(port, address);
  await once(socket, 'listening');
  return { received: () => count };
}

test('of thousands of queries at once, no more are answered than the client may leave unread', async () => {
  const { port, responder } = await lab(nowhere);
  const query = packet.streamEncode({ type: 'query', id: 1, questions: [{ type: 'A', name: 'many.shop' }] });
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  const closed = once(socket, 'close');
  socket.pause().write(Buffer.concat(Array.from({ length: 1_500 }, () => query)));
  // It reads what there is once the server has ended it.
  await expect.poll(() => responder.counts().answered).toBeGreaterThan(0);
  socket.resume();
  await closed;
  // 16 KB each: some 64 here, and what the buffers of the system take.
  expect(responder.counts().answered).toBeLessThan(1_500);
});
