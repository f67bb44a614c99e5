import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** First port of the example. The YAML files contain these ports, too. */
export const USUAL_BASE = 28_000;

const OFFSETS = {
  health: 8,
  xds: 10,
  monitoring: 14,
  storefront: 20,
  reviewsV1: 21,
  reviewsV2: 22,
  stock: 31,
  covers: 41,
  gateway: 80,
  /** The HTTP proxy port of the storefront's sidecar. */
  proxy: 81,
};

/** All on 127.0.0.1. */
export type Ports = Readonly<Record<keyof typeof OFFSETS, number>>;

export function portsFrom(base: number): Ports {
  return Object.fromEntries(Object.entries(OFFSETS).map(([name, offset]) => [name, base + offset])) as Ports;
}

/** The text of an example file with its ports moved. */
export function movePorts(text: string, base: number): string {
  return text.replace(/\b280\d\d\b/g, (port) => `${Number(port) - USUAL_BASE + base}`);
}

/** The ports that are already in use. */
export async function takenPorts(ports: Ports): Promise<number[]> {
  const states = await Promise.all(Object.values(ports).map(async (port) => ({ port, free: await isFree(port) })));
  return states.flatMap(({ port, free }) => (free ? [] : [port]));
}

/**
 * A base from which all ports are free. It is below the ephemeral range for outgoing connections, so that the ports are
 * still free a moment later, and above 15099: endpoints on loopback with ports from 15000 to 15099 are each client's own
 * proxy.
 */
export async function findBase(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const base = 100 * randomInt(151, 320);
    if (base !== USUAL_BASE && (await takenPorts(portsFrom(base))).length === 0) return base;
  }
  throw new Error('no free ports between 15100 and 32000 of 127.0.0.1');
}

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
