/** Workload certificates read and signed on one core, by kind of CA: `taskset -c 0 node bench/signing.ts`. */
import 'reflect-metadata';
import { type webcrypto, generateKeyPairSync } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { Authority } from '../src/identity/authority.ts';
import { readRequest } from '../src/identity/certificate-request.ts';
import { selfSigned, renewed } from '../src/identity/self-signed.ts';
import { type SigningMaterial, readMaterial } from '../src/identity/signing-material.ts';

const identity = 'spiffe://cluster.local/ns/shop/sa/cart';
const now = new Date();
const warmUp = 300;
const rounds = 1000;

/** CPU of all threads, and of the event loop alone, in milliseconds for one of many calls. */
async function cost(call: () => Promise<unknown>): Promise<{ readonly all: number; readonly eventLoop: number }> {
  for (let i = 0; i < warmUp; i++) await call();
  const [all, eventLoop] = [process.cpuUsage(), process.threadCpuUsage()];
  for (let i = 0; i < rounds; i++) await call();
  const each = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000 / rounds;
  return { all: each(process.cpuUsage(all)), eventLoop: each(process.threadCpuUsage(eventLoop)) };
}

/** Time in ms between two turns of the event loop while calls run one after the other. */
async function blocks(call: () => Promise<unknown>): Promise<{ readonly p99: number; readonly longest: number }> {
  const turns: number[] = [];
  let running = true;
  let start = performance.now();
  const turn = (): void => {
    turns.push(performance.now() - start);
    start = performance.now();
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  for (let i = 0; i < rounds; i++) await call();
  running = false;
  // Most turns do nothing but wait for the signature.
  const busy = turns.filter((ms) => ms > 0.1).sort((a, b) => a - b);
  return { p99: busy[Math.floor(busy.length * 0.99)]!, longest: busy.at(-1)! };
}

/** As agents make it: one critical SAN. */
async function requestOf(algorithm: object): Promise<string> {
  const keys = await crypto.subtle.generateKey(algorithm as webcrypto.EcKeyGenParams, true, ['sign', 'verify']);
  const csr = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: [''] }],
    keys,
    signingAlgorithm: { ...(algorithm as webcrypto.EcKeyGenParams), hash: 'SHA-256' } as webcrypto.EcKeyGenParams,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'url', value: identity }], true)],
  });
  return csr.toString('pem');
}

async function materialOf(kind: 'RSA-2048' | 'P-256'): Promise<SigningMaterial> {
  const entries = await selfSigned('cluster.local', now);
  const read = readMaterial(entries, now);
  if ('problem' in read) throw new Error(read.problem);
  if (kind === 'RSA-2048') return read.material;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ec = readMaterial(await renewed({ ...read.material, key: privateKey }, now), now);
  if ('problem' in ec) throw new Error(ec.problem);
  return ec.material;
}

const csrs = {
  'RSA-2048': await requestOf({
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
  }),
  'P-256': await requestOf({ name: 'ECDSA', namedCurve: 'P-256' }),
};
for (const ca of ['RSA-2048', 'P-256'] as const) {
  const authority = new Authority(await materialOf(ca));
  for (const [csr, pem] of Object.entries(csrs)) {
    const read = await readRequest(pem, identity);
    if ('problem' in read) throw new Error(read.problem);
    const steps = {
      read: () => readRequest(pem, identity),
      sign: () => authority.sign(read.request, identity, 0, now),
    };
    const figures: Record<string, object> = {};
    for (const [step, call] of Object.entries(steps)) {
      const { all, eventLoop } = await cost(call);
      const { p99, longest } = await blocks(call);
      figures[step] = {
        perSecond: Math.round(1000 / all),
        cpuMs: Number(all.toFixed(2)),
        eventLoopMs: Number(eventLoop.toFixed(2)),
        blockP99Ms: Number(p99.toFixed(1)),
        longestBlockMs: Number(longest.toFixed(1)),
      };
    }
    console.log(JSON.stringify({ ca, csr, ...figures }));
  }
}
