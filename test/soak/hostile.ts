import { setTimeout as delay } from 'node:timers/promises';
import { framePrefix, nodeField } from '../harness/raw-ads.ts';
import { AdsStream, CDS, EDS, encode, LDS, RDS } from './ads-stream.ts';

/** Where an attack goes, and how it chooses. */
export interface Target {
  readonly port: number;
  readonly monitoring: number;
  /** Between 0 and 1, from the seed. */
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

/** Waits, and ends without an error when the attack is over. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(nothing);
}

/** Streams with combinations of metadata, each for a moment. */
const kindsOfProxies: Attack = async ({ port, random, signal }) => {
  while (!signal.aborted) {
    const metadata = {
      IDLE_TIMEOUT: `${Math.floor(random() * 10_000)}s`,
      NAMESPACE: `n${Math.floor(random() * 10_000)}`,
      POD_PORTS: pick(random, ['', '[{"containerPort":-1}]', '[{"containerPort":1e99}]', '{', '[null]']),
      INTERCEPTION_MODE: pick(random, ['REDIRECT', 'TPROXY', 'NONE', '']),
      DNS_CAPTURE: pick(random, ['true', 'false', 'maybe']),
    };
    const stream = new AdsStream(port, address(random), nothing);
    stream.send(nodeField(idOf(random), metadata), encode({ typeUrl: CDS }));
    stream.send(encode({ typeUrl: LDS }));
    await pause(20, signal);
    stream.close();
  }
};

/** Messages that are announced and never end. */
const unfinishedMessages: Attack = async ({ port, random, signal }) => {
  const chunk = Buffer.alloc(65_536, 1);
  while (!signal.aborted) {
    const streams = Array.from({ length: 10 }, () => {
      const stream = new AdsStream(port, address(random), nothing);
      stream.send(nodeField(idOf(random)), encode({ typeUrl: EDS, names: ['a'] }));
      stream.stream.write(framePrefix(15 * 1024 * 1024));
      return stream;
    });
    for (let i = 0; i < 20 && !signal.aborted; i++) {
      for (const { stream, ended } of streams) if (!ended && stream.writableLength < 1e6) stream.write(chunk);
      await pause(100, signal);
    }
    for (const stream of streams) stream.close();
  }
};

/** Refuses all that it is sent, at once and at length; now and then it reconnects. */
const refusals: Attack = async ({ port, random, signal }) => {
  while (!signal.aborted) {
    const error = `Error adding/updating cluster(s) ${'x'.repeat(Math.floor(random() * 100_000))}\n`;
    const stream = new AdsStream(port, address(random), ({ typeUrl, nonce, resources }) => {
      const named = random() < 0.5 ? [...resources.keys()].slice(0, 3).join(': no, ') : '';
      stream.send(encode({ typeUrl, nonce, error: `${error}${named}: no` }));
    });
    stream.send(nodeField(idOf(random)), encode({ typeUrl: CDS }));
    for (const typeUrl of [LDS, EDS, RDS]) stream.send(encode({ typeUrl, names: typeUrl === LDS ? [] : ['80', 'a'] }));
    await pause(2_000, signal);
    stream.close();
  }
};

/** As an Envoy in trouble: takes some, refuses some, answers some late or never, and asks for odd things. */
const faultyEnvoy: Attack = async ({ port, random, signal }) => {
  while (!signal.aborted) {
    const stream = new AdsStream(port, address(random), ({ typeUrl, nonce }) => {
      const lot = random();
      if (lot < 0.1) return;
      const error = lot < 0.4 ? 'it does not fit' : undefined;
      setTimeout(
        () => stream.send(encode({ typeUrl, nonce, ...(error !== undefined && { error }) })),
        lot < 0.7 ? 0 : random() * 500,
      );
    });
    stream.send(nodeField(idOf(random)), encode({ typeUrl: pick(random, [CDS, LDS, EDS]), names: ['*', 'b'] }));
    for (let i = 0; i < 20 && !signal.aborted; i++) {
      const names = Array.from({ length: Math.floor(random() * 50) }, () => `n${Math.floor(random() * 1000)}`);
      stream.send(encode({ typeUrl: pick(random, [CDS, EDS, LDS, RDS, 'no.such/Type']), names }));
      await pause(50, signal);
    }
    stream.close();
  }
};

/** Asks for everything and reads nothing. */
const deafClients: Attack = async ({ port, random, signal }) => {
  const streams: AdsStream[] = [];
  while (!signal.aborted) {
    const stream = new AdsStream(port, address(random), nothing);
    stream.stream.pause();
    stream.send(nodeField(idOf(random)), encode({ typeUrl: CDS }));
    stream.send(encode({ typeUrl: LDS }));
    streams.push(stream);
    if (streams.length > 100) streams.shift()!.close();
    await pause(100, signal);
  }
  for (const stream of streams) stream.close();
};

/** Connections that come and go as fast as they can, some with a node id without end, some without a word. */
const storms: Attack = async ({ port, random, signal }) => {
  while (!signal.aborted) {
    const streams = Array.from({ length: 20 }, () => {
      const stream = new AdsStream(port, address(random), nothing);
      const lot = random();
      if (lot < 0.3) stream.send(nodeField('x'.repeat(1_000_000)), encode({ typeUrl: CDS }));
      else if (lot < 0.6) stream.send(nodeField(idOf(random)), encode({ typeUrl: CDS }));
      else if (lot < 0.8) stream.send(Buffer.from([0xff, 0xff, 0xff]));
      return stream;
    });
    await pause(200, signal);
    for (const stream of streams) stream.close();
  }
};

const scrapes: Attack = async ({ monitoring, signal }) => {
  while (!signal.aborted) {
    await Promise.all(
      Array.from({ length: 10 }, () =>
        fetch(`http://127.0.0.1:${monitoring}/metrics`, { signal })
          .then((response) => response.text())
          .catch(nothing),
      ),
    );
  }
};

export const attacks: Readonly<Record<string, Attack>> = {
  kindsOfProxies,
  unfinishedMessages,
  refusals,
  faultyEnvoy,
  deafClients,
  storms,
  scrapes,
};
