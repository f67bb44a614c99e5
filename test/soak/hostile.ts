import { type RequestOptions, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { framed, framePrefix, nodeMessage, openAdsStream } from '../harness/raw-ads.ts';
import { AdsStream, CDS, EDS, encode, LDS, RDS, type Response } from './ads-stream.ts';

/** The target of an attack, and its source of randomness. */
export interface Target {
  readonly port: number;
  readonly monitoring: number;
  /** Between 0 and 1, derived from the seed. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

export type Attack = (target: Target) => Promise<void>;

const nothing = (): void => {};
const pick = <T>(random: () => number, list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
const address = (random: () => number): string => `127.0.2.${1 + Math.floor(random() * 200)}`;
const idOf = (random: () => number): string => {
  const number = Math.floor(random() * 1e6);
  return `sidecar~10.9.0.1~p${number}.shop~shop.svc.cluster.local`;
};

/** Waits, and resolves without an error when the attack is over. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(nothing);
}

/** A stream of either kind, from a random address. */
function open({ port, random }: Target, onResponse?: (response: Response) => void): AdsStream {
  return new AdsStream({ port, from: address(random), delta: random() < 0.7 }, onResponse);
}

/** Short streams with combinations of metadata. */
const kindsOfProxies: Attack = async (target) => {
  const { random, signal } = target;
  while (!signal.aborted) {
    const node = nodeMessage(idOf(random), {
      IDLE_TIMEOUT: `${Math.floor(random() * 10_000)}s`,
      NAMESPACE: `n${Math.floor(random() * 10_000)}`,
      POD_PORTS: pick(random, ['', '[{"containerPort":-1}]', '[{"containerPort":1e99}]', '{', '[null]']),
      INTERCEPTION_MODE: pick(random, ['REDIRECT', 'TPROXY', 'NONE', '']),
      DNS_CAPTURE: pick(random, ['true', 'false', 'maybe']),
    });
    const stream = open(target);
    stream.send({ typeUrl: CDS, node });
    stream.send({ typeUrl: LDS });
    await pause(20, signal);
    stream.close();
  }
};

/** Bytes. */
const ANNOUNCED = [15 << 20, 3 << 20, 1 << 20, 200_000, 50_000];

/** Messages that are announced but never completed: one per connection, or a hundred. */
const unfinishedMessages: Attack = async (target) => {
  const { port, random, signal } = target;
  const chunk = Buffer.alloc(65_536, 1);
  const first = (): Buffer => framed(encode({ typeUrl: EDS, node: nodeMessage(idOf(random)), names: ['a'] }));
  while (!signal.aborted) {
    const alone = Array.from({ length: 10 }, () => open(target));
    const crowded = new AdsStream({ port, from: address(random) });
    const more = Array.from({ length: 99 }, () => openAdsStream(crowded.session, true));
    const streams = [...alone, crowded].map(({ stream }) => stream).concat(more);
    /** For each stream, the bytes left to write before it stops short of the end. */
    const left = streams.map((stream) => {
      const length = pick(random, ANNOUNCED);
      stream.write(first());
      stream.write(framePrefix(length));
      return length - 1;
    });
    for (let i = 0; i < 20 && !signal.aborted; i++) {
      streams.forEach((stream, at) => {
        if (!stream.writable || stream.writableLength > 1e6) return;
        const piece = chunk.subarray(0, left[at]);
        left[at]! -= piece.length;
        stream.write(piece);
      });
      await pause(100, signal);
    }
    for (const stream of [...alone, crowded]) stream.close();
  }
};

/** Rejects everything immediately with long errors; reconnects now and then. */
const refusals: Attack = async (target) => {
  const { random, signal } = target;
  while (!signal.aborted) {
    const error = `Error adding/updating cluster(s) ${'x'.repeat(Math.floor(random() * 100_000))}\n`;
    const stream = open(target, ({ typeUrl, nonce, resources }) => {
      const named = random() < 0.5 ? [...resources.keys()].slice(0, 3).join(': no, ') : '';
      stream.send({ typeUrl, nonce, error: `${error}${named}: no` });
    });
    stream.send({ typeUrl: CDS, node: nodeMessage(idOf(random)) });
    for (const typeUrl of [LDS, EDS, RDS]) stream.send({ typeUrl, names: typeUrl === LDS ? [] : ['80', 'a'] });
    await pause(2_000, signal);
    stream.close();
  }
};

/** Like an Envoy in trouble: accepts some, rejects some, answers some late or never, and asks for odd things. */
const faultyEnvoy: Attack = async (target) => {
  const { random, signal } = target;
  while (!signal.aborted) {
    const stream = open(target, ({ typeUrl, nonce, version }) => {
      const lot = random();
      if (lot < 0.1) return;
      const answer = lot < 0.4 ? { error: 'it does not fit' } : !stream.delta && { version };
      setTimeout(() => stream.send({ typeUrl, nonce, ...answer }), lot < 0.7 ? 0 : random() * 500);
    });
    const names = ['*', 'b'];
    stream.send({ typeUrl: pick(random, [CDS, LDS, EDS]), node: nodeMessage(idOf(random)), names });
    for (let i = 0; i < 20 && !signal.aborted; i++) {
      const odd = Array.from({ length: Math.floor(random() * 50) }, () => `n${Math.floor(random() * 1000)}`);
      stream.send({ typeUrl: pick(random, [CDS, EDS, LDS, RDS, 'no.such/Type']), names: odd });
      await pause(50, signal);
    }
    stream.close();
  }
};

/** Asks for everything and reads nothing. */
const deafClients: Attack = async (target) => {
  const { random, signal } = target;
  const streams: AdsStream[] = [];
  while (!signal.aborted) {
    const stream = open(target);
    stream.stream.pause();
    stream.send({ typeUrl: CDS, node: nodeMessage(idOf(random)) });
    stream.send({ typeUrl: LDS });
    streams.push(stream);
    if (streams.length > 100) streams.shift()!.close();
    await pause(100, signal);
  }
  for (const stream of streams) stream.close();
};

/**
 * Connections that come and go as fast as they can: some with an endless node id, some silent, some with thousands of
 * versions that nobody ever served.
 */
const storms: Attack = async (target) => {
  const { random, signal } = target;
  while (!signal.aborted) {
    const streams = Array.from({ length: 20 }, () => {
      const stream = open(target);
      const lot = random();
      if (lot < 0.3) stream.send({ typeUrl: CDS, node: nodeMessage('x'.repeat(1_000_000)) });
      else if (lot < 0.5) stream.send({ typeUrl: CDS, node: nodeMessage(idOf(random)) });
      else if (lot < 0.6 && stream.delta) {
        const initial = new Map(Array.from({ length: 5_000 }, (_, i) => [`outbound|80||s${i}`, `${random()}`]));
        stream.send({ typeUrl: CDS, node: nodeMessage(idOf(random)), initial });
      } else if (lot < 0.8) stream.sendBytes(Buffer.from([0xff, 0xff, 0xff]));
      return stream;
    });
    await pause(200, signal);
    for (const stream of streams) stream.close();
  }
};

/** Scrapes the metrics, and requests debug pages under the host name of a foreign web page. */
const scrapes: Attack = async ({ monitoring, random, signal }) => {
  while (!signal.aborted) {
    await Promise.all(
      Array.from({ length: 10 }, () => {
        const path = pick(random, ['metrics', 'metrics', 'debug/syncz', 'debug/problems']);
        const host = path === 'metrics' ? `127.0.0.1:${monitoring}` : 'evil.example.com';
        return get({ port: monitoring, path: `/${path}`, headers: { host }, signal }).catch(nothing);
      }),
    );
    await pause(50, signal);
  }
};

/** Reads a response to its end. */
function get(options: RequestOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', agent: false, ...options }, (response) => {
      response.on('error', reject).on('end', resolve).resume();
    });
    asked.on('error', reject).end();
  });
}

export const attacks: Readonly<Record<string, Attack>> = {
  kindsOfProxies,
  unfinishedMessages,
  refusals,
  faultyEnvoy,
  deafClients,
  storms,
  scrapes,
};
