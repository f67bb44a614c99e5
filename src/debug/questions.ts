import { setImmediate } from 'node:timers/promises';
import type { GivenType } from '../ads/transport/given.ts';
import type { EncodedResource } from '../ads/store/resource.ts';
import type { Answer, Denial, Question, Questions } from '../ads/types.ts';
import type { Protos } from '../envoy/encode/proto.ts';
import { leaf, resource } from '../envoy/encode/resource.ts';
import { isLoopback } from '../ops/debug/local.ts';
import { type DebugPages, NOT_CONNECTED } from '../ops/debug/pages.ts';
import { type ProxyState, findProxy } from '../ops/debug/proxies.ts';
import { clientStatus } from './client-status.ts';
import { configDumpMessages } from './config-dump.ts';

/** The types by which Istio's tools ask a control plane about itself. */
const DEBUG = 'istio.io/debug';
const SYNCZ = 'istio.io/debug/syncz';
const CONFIG_DUMP = 'istio.io/debug/config_dump';

/** How long an answer is made before other work has its turn. Milliseconds. */
const SLICE_MS = 5;
/** Larger answers are only on the pages, which are streamed. Bytes. */
const LARGEST = 32 * 1024 * 1024;

export interface QuestionSources {
  readonly protos: Protos;
  /** Service accounts in this namespace of this cluster may ask. */
  readonly rootNamespace: string;
  readonly clusterId: string;
  /** Name of this replica, and the version that it runs. */
  readonly replica: string;
  readonly version: string;
  readonly proxies: () => Iterable<ProxyState>;
  readonly given: (stream: string) => readonly GivenType[];
  /** The debug pages, which can be asked for by name. */
  readonly pages: DebugPages;
}

/** What Istio's tools ask over xDS, instead of HTTP: who is synchronised, what a proxy is given, and any debug page. */
export function debugQuestions(sources: () => QuestionSources): Questions {
  return {
    isOne: (typeUrl) => typeUrl === SYNCZ || typeUrl === CONFIG_DUMP || typeUrl === DEBUG,
    async answer(question, signal) {
      const { replica, version, protos, proxies, given, pages } = sources();
      const denial = denialOf(question, sources());
      if (denial !== undefined) return denial;
      const [name = '', ...others] = question.names;
      const identifier = { Component: 'istiod', ID: replica, Info: { version } };
      const controlPlane = JSON.stringify(identifier);
      if (question.typeUrl === SYNCZ) {
        const found = await inSlices(statuses(protos, proxies()), signal);
        return bounded(found, controlPlane);
      }
      if (name === '' || others.length > 0)
        return { code: 'INVALID_ARGUMENT', message: 'exactly one resource name is required' };
      if (question.typeUrl === CONFIG_DUMP) {
        const proxy = findProxy(proxies(), name);
        if (proxy === undefined) return { resources: [text(name, NOT_CONNECTED)], controlPlane };
        return bounded(await inSlices(configDumpMessages(protos, given(proxy.stream)), signal), controlPlane);
      }
      return bounded(await inSlices(pageText(pages, name), signal), controlPlane);
    },
  };
}

/** As for the debug pages, or with the credential of a service account next to the control plane's own. */
function denialOf(
  { identity, address }: Question,
  { rootNamespace, clusterId }: Pick<QuestionSources, 'rootNamespace' | 'clusterId'>,
): Denial | undefined {
  if (identity !== undefined) {
    if (identity.namespace === rootNamespace && identity.cluster === clusterId) return undefined;
    const message = `debug information is for service accounts in namespace ${rootNamespace} of cluster ${clusterId}`;
    return { code: 'PERMISSION_DENIED', message };
  }
  if (isLoopback(address)) return undefined;
  const message = 'authentication required: on the plaintext port, debug information is for this machine only';
  return { code: 'UNAUTHENTICATED', message };
}

function* statuses(protos: Protos, proxies: Iterable<ProxyState>): Generator<void, EncodedResource[]> {
  const found: EncodedResource[] = [];
  for (const proxy of proxies) {
    found.push(clientStatus(protos, proxy));
    yield;
  }
  return found;
}

/** A page is asked for by its name and query: `config_dump?proxyID=a.shop`. */
function* pageText(pages: DebugPages, name: string): Generator<void, EncodedResource[] | undefined> {
  const [path = '', query = ''] = name.split('?', 2);
  const page = pages.get(path.replace(/^\/?(debug\/)?/, ''));
  // In these words, Istio's tools list what there is instead.
  if (page === undefined) return [text(name, '404 page not found')];
  const { body } = page.show(new URLSearchParams(query));
  if (typeof body === 'string') return [text(name, body)];
  const pieces: string[] = [];
  let length = 0;
  for (const piece of body) {
    length += piece.length;
    if (length > LARGEST) return undefined;
    pieces.push(piece);
    yield;
  }
  return [text(name, pieces.join(''))];
}

function text(name: string, content: string): EncodedResource {
  return resource(DEBUG, name, leaf(Buffer.from(content), []));
}

function bounded(resources: readonly EncodedResource[] | undefined, controlPlane: string): Answer | Denial {
  const length = resources?.reduce((sum, { body }) => sum + body.length, 0) ?? Infinity;
  if (resources !== undefined && length <= LARGEST) return { resources, controlPlane };
  const message = `the answer is larger than ${LARGEST} bytes; ask the debug pages on port 8080 or 15014 instead`;
  return { code: 'RESOURCE_EXHAUSTED', message };
}

/** Works until it is done, or nobody waits any more. */
async function inSlices<T>(work: Generator<void, T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    const ends = performance.now() + SLICE_MS;
    let step = work.next();
    while (step.done !== true && performance.now() < ends) step = work.next();
    if (step.done === true) return step.value;
    await setImmediate();
    signal.throwIfAborted();
  }
}
