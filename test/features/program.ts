import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { ServiceError } from '@grpc/grpc-js';
import { expect, onTestFinished, vi } from 'vitest';
import { ContentHasher } from '../../src/ads/store/content-hash.ts';
import { Store } from '../../src/ads/store/store.ts';
import { bytesOf } from '../../src/ads/wire/bytes-of.ts';
import { type Serving, startServing } from '../../src/app.ts';
import type { KindName } from '../../src/api/kinds.ts';
import { type KubernetesObject, objectKey, printRef } from '../../src/api/object.ts';
import type { Problem } from '../../src/api/problem.ts';
import { assertFromScratch } from '../../src/cache/testing/from-scratch.ts';
import { readConfig } from '../../src/config/config.ts';
import type { ErrorSource } from '../../src/base/contained-errors.ts';
import type { Amend } from '../../src/envoy/encode/encoder.ts';
import { buildMesh } from '../../src/mesh.ts';
import { snapshotOf } from '../../src/debug/snapshot.ts';
import { type Node, XdsClient } from '../conformance/xds-client.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { testEncoder, testProtos, testValidate } from '../harness/mesh.ts';
import { CDS, EDS, LDS, Proxy, RDS } from './proxy.ts';
import { SkippingClock } from './skipping-clock.ts';
import { PATIENCE, Waiters } from './waiters.ts';

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface ProgramOptions {
  /** Its name among those that share a Lease. */
  readonly identity?: string | undefined;
  readonly clock?: SkippingClock | undefined;
  /** Changes finished messages. */
  readonly amend?: Amend | undefined;
  /** Is told of every line of the log, at once. */
  readonly onLine?: (line: LogLine) => void;
  /** Where errors are seen that nothing handles. */
  readonly errors?: ErrorSource;
  /** How large the heap may become. */
  readonly heapBytes?: number;
  /**
   * As outside tests, only who has a credential is of a tenant; otherwise the node id says which. Default: true if there
   * is no plaintext port.
   */
  readonly provenTenants?: boolean;
  /** When it ends: with the test, if nothing else is said. */
  readonly onEnd?: OnEnd;
}

/** The whole of Fairlead in this process, started from its settings, on free ports. */
export class Program {
  readonly serving: Serving;
  readonly clock: SkippingClock;
  readonly log: LogLine[];
  readonly #stop: AbortController;
  readonly #proxies: Proxy[] = [];
  readonly #logged: Waiters;
  readonly #committed = new Waiters();
  /** What a proxy that asks for everything now would be given. */
  readonly #store = new Store(new ContentHasher([1, 2]));

  private constructor(serving: Serving, stop: AbortController, clock: SkippingClock, log: LogLine[], logged: Waiters) {
    this.serving = serving;
    this.#stop = stop;
    this.clock = clock;
    this.log = log;
    this.#logged = logged;
    const { mesh } = serving.engine;
    mesh.graph.observe((draft) => this.#store.apply(mesh.publicationOf(draft)));
    mesh.graph.observe(() => setTimeout(() => this.#committed.wake()));
  }

  static async start(
    settings: Readonly<Record<string, string | readonly string[]>>,
    {
      identity = 'one',
      clock = new SkippingClock(),
      amend,
      onLine,
      errors,
      heapBytes,
      provenTenants = settings['grpcAddress'] === 'off',
      onEnd = onTestFinished,
    }: ProgramOptions = {},
  ): Promise<Program> {
    const stop = new AbortController();
    const log: LogLine[] = [];
    const logged = new Waiters();
    const stream = new Writable({
      write(chunk: Buffer, _, done) {
        for (const text of chunk.toString().trim().split('\n')) {
          const line = JSON.parse(text) as LogLine;
          log.push(line);
          onLine?.(line);
        }
        logged.wake();
        done();
      },
    });
    const address = '127.0.0.1:0';
    const addresses = {
      grpcAddress: address,
      secureGrpcAddress: address,
      healthAddress: address,
      monitoringAddress: address,
    };
    // Tests skip hours, in which proxies stay connected.
    const lasting = { shutdownDuration: '0s', keepaliveMaxServerConnectionAge: 'off' };
    const config = readConfig({ flags: { ...addresses, logFormat: 'json', ...lasting, ...settings }, env: {} });
    const serving = await startServing(config, stop.signal, {
      clock,
      protos: testProtos(),
      validate: testValidate(),
      log: stream,
      identity,
      podUid: `uid of ${identity}`,
      adsTimes: { times: { lingerMs: 0 }, tickMs: 10 },
      ...(amend && { amend }),
      ...(errors && { errors }),
      ...(heapBytes !== undefined && { heapBytes }),
      ...(!provenTenants && { tenantOf: ({ nodeId }) => nodeId.split('~')[2]?.split('.').at(-1) ?? '' }),
    });
    const program = new Program(serving, stop, clock, log, logged);
    onEnd(async () => {
      for (const proxy of program.#proxies) proxy.close();
      await program.stop();
    });
    return program;
  }

  /** A proxy that has everything: a sidecar of the shop, unless its node and what it is to have say something else. */
  async connect(
    delta: boolean,
    node: Partial<Node> = {},
    until = (proxy: Proxy): void => expect(proxy.listeners()).toContain('virtualOutbound'),
  ): Promise<Proxy> {
    await this.logged('Ready');
    const ready = async (): Promise<void> => expect((await get(this.serving.ports.health, '/ready')).status).toBe(200);
    await vi.waitFor(ready, { timeout: PATIENCE });
    const id = `sidecar~10.0.0.${this.#proxies.length + 1}~client.shop~shop.svc.cluster.local`;
    const proxy = new Proxy(this.serving.ports.grpc!, delta, { id, ...node });
    this.#proxies.push(proxy);
    await this.sent(proxy, until);
    return proxy;
  }

  /** How a client is refused that asks for clusters now. */
  async refusal(delta: boolean): Promise<ServiceError | undefined> {
    const client = new XdsClient(this.serving.ports.grpc!, delta);
    client.send({ typeUrl: CDS, node: { id: 'refused' } });
    const error = await client.closed;
    client.close();
    return error;
  }

  /** Waits until the proxy has it like this; all that it was sent since the last call. */
  async sent(proxy: Proxy, until: (proxy: Proxy) => void): Promise<ReturnType<Proxy['takeChanges']>> {
    await proxy.until(until);
    await this.settled();
    return proxy.takeChanges();
  }

  /** Ends it, as a signal to its process does. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.serving.ended;
  }

  /** Waits until a line with this text was logged. */
  async logged(text: string, times = 1): Promise<LogLine> {
    const find = (): LogLine | undefined => this.log.filter(({ msg }) => msg.includes(text))[times - 1];
    await this.#logged.until(() => expect(find(), text).toBeDefined());
    return find()!;
  }

  /** As the newest commit has it. */
  object(kind: KindName, namespace: string, name: string): KubernetesObject | undefined {
    return this.serving.engine.mesh.inputs.objects[kind].get(objectKey('Kubernetes', namespace, name));
  }

  /** Waits for a commit after which it holds. */
  committed(assertion: () => void): Promise<void> {
    return this.#committed.until(assertion);
  }

  /** What is seen now, and after each commit from now on if it differs from the last. */
  seen<T>(look: () => T): readonly T[] {
    const seen = [look()];
    this.serving.engine.committer.onCommit(() => {
      if (look() !== seen.at(-1)) seen.push(look());
    });
    return seen;
  }

  /** Waits for something to be wrong with an object (`kind/namespace/name`), and says what. */
  async reported(object: string): Promise<readonly string[]> {
    const { byObject } = this.serving.engine.mesh.problems;
    const find = (): readonly Problem[] =>
      [...byObject.entries()].flatMap(([, found]) => found).filter((problem) => printRef(problem.object) === object);
    await this.committed(() => expect(find(), object).not.toEqual([]));
    return find().map(({ field, message }) => `${field}: ${message}`);
  }

  /**
   * Waits until everything that was delivered is committed, sent and acknowledged by the proxies. Then these hold what a program
   * would give them that had seen nothing but the present objects, and nothing else.
   */
  async settled(): Promise<void> {
    const { ads, committer, mesh } = this.serving.engine;
    const ours = new Set(this.#proxies.map(({ id }) => id));
    const owed = () =>
      ads
        .streams()
        .filter(({ nodeId }) => ours.has(nodeId))
        .flatMap(({ nodeId, types }) => types.filter(({ synced }) => !synced).map((type) => ({ nodeId, ...type })));
    const since = performance.now();
    do {
      await committer.settled();
      await setImmediate();
      if (performance.now() - since > PATIENCE)
        expect.fail(`not settled: ${JSON.stringify([committer.stats, owed()])}`);
    } while (committer.stats.pending > 0 || owed().length > 0);
    expect([...mesh.graph.failures.values()].map(({ error }) => error)).toEqual([]);
    expect(ads.counts()).toMatchObject({ failures: 0, timeouts: 0 });
    assertFromScratch(mesh.graph, (graph) => void buildMesh(graph, testEncoder()));
    // Clusters that are not needed any more go a moment later.
    for (const proxy of this.#proxies) await proxy.until(() => this.#compare(proxy));
  }

  #compare(proxy: Proxy): void {
    const { mesh } = this.serving.engine;
    const [stream] = [...mesh.inputs.proxies.entries()].find(([, { nodeId }]) => nodeId === proxy.id) ?? [];
    if (stream === undefined) return;
    const { cds, eds, lds, rds } = snapshotOf(this.#store, mesh.worldOf(stream), testProtos());
    for (const [type, resources] of [
      [CDS, cds],
      [EDS, eds],
      [LDS, lds],
      [RDS, rds],
    ] as const) {
      const held = proxy.held(type);
      expect([...held.keys()].sort()).toEqual(resources.map(({ name }) => name).sort());
      for (const { name, body } of resources)
        expect(Buffer.from(held.get(name)!).equals(bytesOf(body)), name).toBe(true);
    }
  }
}

/** What a page of the program says. */
export async function get(port: number, path: string): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: response.status, body: await response.text() };
}
