/**
 * The process behind `make cluster`: starts the node, fills it, and keeps it until SIGTERM. It says in the state what it
 * has done; its log has the rest.
 */
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { SHOP, installFairlead, openBookshop } from '../../test/node/bookshop.ts';
import { buildImages } from '../../test/node/images.ts';
import { startOnlyNode } from '../../test/node/only-node.ts';
import type { RunningNode } from '../../test/node/node.ts';
import { buildProjectImages, shopImage } from '../../test/node/project-images.ts';
import { pathOf } from '../../test/peers/peer.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { isFree } from '../run/ports.ts';
import { CLUSTER, type State, writeState } from './state.ts';

/** The same each time where they are free, as they are not beside `make run`. */
const USUAL_PORTS = { api: 28_443, shop: 28_080 };

const stopping = new AbortController();
const { signal } = stopping;
const told = new Promise<void>((resolve) => {
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(name, () => {
      stopping.abort();
      resolve();
    });
});

let state: State = { keeper: process.pid, steps: [] };
let begun = performance.now();
await writeState(state);
await keep();

async function keep(): Promise<void> {
  let node: RunningNode | undefined;
  try {
    const images = [
      ...(await buildProjectImages(['fairlead', 'fairlead-proxy'], signal)),
      ...(await buildImages([shopImage()], signal)),
    ];
    await done('images');
    const directory = join(CLUSTER, 'node');
    await mkdir(directory);
    node = await startOnlyNode({ directory, apiPort: await portOr(USUAL_PORTS.api), images, signal });
    await done('Kubernetes');
    const shop = await fill(node);
    const programs = await linkPrograms();
    const kubeconfig = join(CLUSTER, 'kubeconfig');
    await copyFile(node.kubeconfig, kubeconfig);
    await done('everything is ready', { ready: { kubeconfig, programs, shop } });
    await told;
  } catch (error) {
    if (!signal.aborted) {
      console.error(node?.log() ?? '');
      console.error(error);
      process.exitCode = 1;
    }
  } finally {
    await node?.stop();
  }
}

/** Returns the port of the bookshop. */
async function fill(node: RunningNode): Promise<number> {
  await installFairlead(node);
  await done('Fairlead');
  await openBookshop(node, ['bookshop/reviews', 'bookshop/stock']);
  const port = await node.forward(`ingressgateway.${SHOP}.svc.cluster.local`, 80, await portOr(USUAL_PORTS.shop));
  await done('the bookshop');
  return port;
}

/** It, or any other that is free. */
async function portOr(usual: number): Promise<number> {
  return (await isFree(usual)) ? usual : (await freePorts(1))[0]!;
}

/** kubectl and helm that fit this Kubernetes. */
async function linkPrograms(): Promise<string> {
  const directory = join(CLUSTER, 'bin');
  await mkdir(directory, { recursive: true });
  for (const name of ['kubectl', 'helm', 'istioctl'] as const) await symlink(pathOf(name), join(directory, name));
  return directory;
}

async function done(step: string, more: Partial<State> = {}): Promise<void> {
  const seconds = ((performance.now() - begun) / 1000).toFixed(0);
  begun = performance.now();
  state = { ...state, ...more, steps: [...state.steps, `${step} (${seconds} s)`] };
  await writeState(state);
}
