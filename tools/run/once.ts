import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { poll } from '../../test/peers/process.ts';
import { type Page, partNames } from './bookshop.ts';
import type { ProxyState } from './fairlead.ts';
import { type Stage, isSettled } from './stage.ts';
import { Visitor } from './visitor.ts';

/** The result of one check: whether it matches the files, and what was seen. */
interface Finding {
  readonly ok: boolean;
  readonly saw: string;
}

const SIDECAR = 'storefront.bookshop';
const GATEWAY = 'ingressgateway.istio-system';

/** With 400 requests, a share of 80 % falls outside these bounds once in many thousand years of running this. */
const REQUESTS = 400;
const MOST = { atLeast: 60, atMost: 95 };
const FEW = { atLeast: 5, atMost: 40 };

export interface LookOptions {
  readonly stage: Stage;
  /** Directory whose files are modified. */
  readonly directory: string;
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Checks that requests go where the files in this directory say, even after changes. Prints what it sees. */
export async function lookOnce({ stage, directory, print, signal }: LookOptions): Promise<boolean> {
  const visitor = new Visitor(stage.ports);
  const looks: Readonly<Record<string, () => Promise<Finding>>> = {
    'whole path': () => wholePath(visitor),
    acknowledged: () => acknowledged(stage),
    problems: () => problems(stage),
    split: () => split(visitor, MOST),
    'header match': () => headerMatch(visitor),
    fault: () => fault(visitor),
    redirect: () => redirect(visitor),
    'change of weights': () => changeOfWeights(stage, visitor, directory),
    'split after it': () => split(visitor, FEW),
  };
  let failed = 0;
  try {
    for (const [name, look] of Object.entries(looks)) {
      const { ok, saw } = await look().catch((error: unknown): Finding => ({ ok: false, saw: String(error) }));
      signal.throwIfAborted();
      if (!ok) failed++;
      print(`${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(18)}  ${saw}`);
    }
  } finally {
    visitor.leave();
  }
  const count = Object.keys(looks).length;
  print(failed === 0 ? `All ${count} looks as the files say.` : `${failed} of ${count} looks not as the files say.`);
  return failed === 0;
}

async function wholePath(visitor: Visitor): Promise<Finding> {
  const page = await visitor.page();
  const parts = partNames.map((name) => `${name} ${page.parts[name].version ?? page.parts[name].status}`);
  return {
    ok: partNames.every((name) => page.parts[name].status === 200),
    saw: `storefront ${page.version} behind the gateway; ${parts.join(', ')} behind its sidecar`,
  };
}

async function acknowledged(stage: Stage): Promise<Finding> {
  const states = await stage.fairlead.proxies();
  const saw = states.map(
    ({ name, types }) => `${name}: ${types.map((type) => `${type.name} ${type.acked}`).join(' ')}`,
  );
  return { ok: isSettled(states, [GATEWAY, SIDECAR]), saw: saw.join('; ') };
}

async function problems(stage: Stage): Promise<Finding> {
  const found = [...(await stage.fairlead.problems()), ...stage.fairlead.complaints()];
  return { ok: found.length === 0, saw: found.join('; ') || 'none' };
}

/** Percentage of the responses from version v1. */
async function split(visitor: Visitor, v1: { atLeast: number; atMost: number }): Promise<Finding> {
  const versions = await times(REQUESTS, async () => versionOfReviews(await visitor.page()));
  const share = (100 * versions.filter((version) => version === 'v1').length) / REQUESTS;
  return {
    ok: share >= v1.atLeast && share <= v1.atMost && versions.every((version) => version === 'v1' || version === 'v2'),
    saw: `${REQUESTS} requests: reviews ${count(versions)}`,
  };
}

async function headerMatch(visitor: Visitor): Promise<Finding> {
  const headers = { 'x-reader': 'beta' };
  const versions = await times(50, async () => versionOfReviews(await visitor.page({ headers })));
  return {
    ok: versions.every((version) => version === 'v2'),
    saw: `50 requests with x-reader: beta: reviews ${count(versions)}`,
  };
}

async function fault(visitor: Visitor): Promise<Finding> {
  const headers = { 'x-rehearse': 'outage' };
  const pages = await times(50, () => visitor.page({ headers }));
  const { status, body } = await visitor.fromStorefront('http://stock/', { headers });
  const without = await visitor.fromStorefront('http://stock/');
  const statuses = pages.map(({ parts }) => `${parts.stock.status}`);
  return {
    ok: statuses.every((s) => s === '503') && body === 'fault filter abort' && without.status === 200,
    saw: `50 requests with x-rehearse: outage: stock ${count(statuses)} (${status} "${body}"), without: ${without.status}`,
  };
}

async function redirect(visitor: Visitor): Promise<Finding> {
  const { status, headers } = await visitor.fromOutside('/catalogue');
  const location = headers.location ?? '';
  return {
    ok: status === 301 && new URL(location, 'http://localhost').pathname === '/',
    saw: `/catalogue: ${status} to ${location}`,
  };
}

/** Swaps the weights of the reviews while requests continue. */
async function changeOfWeights(stage: Stage, visitor: Visitor, directory: string): Promise<Finding> {
  const file = join(directory, 'reviews.yaml');
  const before = await readFile(file, 'utf8');
  const after = before.replace(/weight: (\d+)/g, (_, weight: string) => `weight: ${100 - Number(weight)}`);
  const [routes, others] = noncesOf(await stage.fairlead.proxies());
  const changed = new AbortController();
  const meanwhile = visitUntil(changed.signal, visitor);
  try {
    const start = performance.now();
    await writeFile(file, after);
    const now = await poll('the sidecar has acknowledged new routes', async () => {
      const states = await stage.fairlead.proxies();
      const arrived = noncesOf(states)[0] !== routes && isSettled(states, [GATEWAY, SIDECAR]);
      return arrived ? states : undefined;
    });
    const took = performance.now() - start;
    changed.abort();
    const { served, lost } = await meanwhile;
    const same = noncesOf(now)[1] === others;
    return {
      ok: lost === 0 && served > 0 && same,
      saw:
        `acknowledged by the sidecar ${took.toFixed(0)} ms after the file was saved; ` +
        `${served} requests meanwhile, ${lost} lost; ${same ? 'nothing else was sent' : 'more was sent than its routes'}`,
    };
  } finally {
    changed.abort();
    await meanwhile;
  }
}

/** The nonce that the sidecar acknowledged for its routes, and those of everything else, as one text. */
function noncesOf(states: readonly ProxyState[]): readonly [string, string] {
  const all = states.flatMap(({ name, types }) =>
    types.map((type) => ({ isRoutes: name === SIDECAR && type.name === 'route', acked: type.acked })),
  );
  const pick = (routes: boolean): string =>
    all
      .filter(({ isRoutes }) => isRoutes === routes)
      .map(({ acked }) => acked)
      .join(' ');
  return [pick(true), pick(false)];
}

async function visitUntil(signal: AbortSignal, visitor: Visitor): Promise<{ served: number; lost: number }> {
  let [served, lost] = [0, 0];
  while (!signal.aborted) {
    const page = await visitor.page().catch(() => undefined);
    if (page !== undefined && partNames.every((name) => page.parts[name].status === 200)) served++;
    else lost++;
  }
  return { served, lost };
}

function versionOfReviews({ parts: { reviews } }: Page): string {
  return reviews.version ?? `${reviews.status}`;
}

/** Does it `total` times, some at once. */
async function times<T>(total: number, act: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun++ < total) results.push(await act());
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return results;
}

/** `v1 322, v2 78` */
function count(values: readonly string[]): string {
  return [...new Set(values)]
    .sort()
    .map((value) => `${value} ${values.filter((other) => other === value).length}`)
    .join(', ');
}
