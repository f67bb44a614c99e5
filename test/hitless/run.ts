import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { type Serving, startServing } from '../../src/app.ts';
import { kindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { testProtos, testValidate } from '../harness/mesh.ts';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { type MeshCa, securePortIn } from '../peers/mesh-ca.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { randomOf } from '../soak/random.ts';
import { changeOf } from './changes.ts';
import { type Failure, Load } from './load.ts';
import { type Files, objectsOf } from './objects.ts';
import { answerersOf, firstWorld, type Flow, flowsOf, NAMESPACE, type Ports, type World } from './world.ts';

export interface HitlessOptions {
  readonly seed: number;
  readonly delta: boolean;
  readonly changes: number;
  /** Without the barrier: requests are lost, or the run proves nothing. */
  readonly unguarded?: boolean;
  /** Ends a run early once this many requests have failed. */
  readonly enough?: number;
  readonly args?: readonly string[];
}

export interface HitlessReport {
  readonly changes: number;
  readonly commits: number;
  /** By protocol and kind of connection. */
  readonly requests: Readonly<Record<string, number>>;
  /** Each with the last changes before it. */
  readonly failures: readonly string[];
  /** What a proxy rejected, and all else that the server warned of. */
  readonly rejections: readonly string[];
  /** Waits of the barrier that ended without an answer. */
  readonly timeouts: number;
}

/**
 * Former listeners are gone after this long. Envoy counts in seconds. It closes connections of a client that does nothing
 * meanwhile, so this is longer than the load may have to wait for a processor.
 */
const DRAIN_SECONDS = 10;
/** Enough for Envoy's back-off between attempts: at most 250 ms. */
const LINGER_MS = 500;
/** A change that has not settled by then is followed by the next one anyway. Milliseconds. */
const PATIENCE_MS = 2_000;
/** The share of changes that the next one does not wait for, and the time until then. */
const HASTE = { share: 0.4, ms: 150 };
/** Every so many changes all requests must arrive where they are meant to. */
const CHECK_EVERY = 10;
/** What the log says once proxies can connect, and of the mistakes that are made on purpose. */
const SIGNING = 'Signing certificates';
const MISTAKES = /^(Object has a problem|More objects have problems)/;
/** Changes that are told with a failure. */
const TOLD = 5;

/**
 * A server in this process, two real Envoys (a client's sidecar and a gateway), and constant load through both while
 * everything changes.
 */
export async function runHitless(options: HitlessOptions): Promise<HitlessReport> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-hitless-'));
  const end: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true })];
  try {
    return await new Run(options, await portsOfRun(), directory, end).run();
  } finally {
    for (const each of end.reverse()) await each();
  }
}

class Run {
  readonly #options: HitlessOptions;
  readonly #ports: Ports;
  readonly #directory: string;
  readonly #files: Files;
  readonly #end: (() => Promise<unknown>)[];
  readonly #random: () => number;
  readonly #told: { readonly at: number; readonly what: string }[] = [];
  readonly #rejections: string[] = [];
  readonly #envoys: RunningEnvoy[] = [];
  readonly #uids = new Map<string, string>();
  #generation = 0;
  /** As they were last applied. */
  #objects: ReadonlyMap<string, KubernetesObject> = new Map();
  #world: World;
  #serving!: Serving;
  #load!: Load;

  constructor(options: HitlessOptions, ports: Ports, directory: string, end: (() => Promise<unknown>)[]) {
    this.#options = options;
    this.#ports = ports;
    this.#directory = directory;
    this.#files = certificateIn(directory);
    this.#end = end;
    this.#random = randomOf(options.seed);
    this.#world = firstWorld(ports);
  }

  async run(): Promise<HitlessReport> {
    const { changes, seed, enough = Infinity } = this.#options;
    await this.#start();
    this.#load = await Load.start({ ports: this.#ports, seed });
    this.#end.push(() => this.#load.close());
    await this.#arrive();
    let made = 0;
    for (; made < changes && this.#load.failures.length < enough; made++) await this.#change(made);
    await this.#arrive();
    await this.#load.run([]);
    const { requests, failures } = this.#load;
    return {
      changes: made,
      commits: this.#engine.committer.stats.commits,
      requests,
      failures: failures.map((each) => this.#tell(each)),
      rejections: this.#rejections,
      timeouts: this.#engine.ads.counts().timeouts,
    };
  }

  get #engine(): Engine {
    return this.#serving.engine;
  }

  async #start(): Promise<void> {
    const { ca, settings } = await securePortIn(join(this.#directory, 'ca'));
    const objects = join(this.#directory, 'objects');
    await mkdir(objects);
    const any = '127.0.0.1:0';
    const config = readConfig({
      flags: {
        // There are none; those of the run go to the engine, many at once.
        directory: [objects],
        ...settings,
        ...{ secureGrpcAddress: any, healthAddress: any, monitoringAddress: any },
        ...{ logFormat: 'json', shutdownDuration: '0s' },
      },
      env: {},
    });
    const stop = new AbortController();
    const isServing = Promise.withResolvers<void>();
    const log = new Writable({
      write: (chunk: Buffer, _, done) => {
        for (const line of chunk.toString().trim().split('\n')) {
          const { level, msg } = JSON.parse(line) as { readonly level: string; readonly msg: string };
          if (msg === SIGNING) isServing.resolve();
          if (level !== 'info' && !MISTAKES.test(msg)) this.#rejections.push(line);
        }
        done();
      },
    });
    this.#serving = await startServing(config, stop.signal, {
      log,
      protos: testProtos(),
      validate: testValidate(),
      adsTimes: {
        times: { lingerMs: LINGER_MS },
        tickMs: 100,
        unguarded: this.#options.unguarded ?? false,
      },
    });
    this.#end.push(() => (stop.abort(), this.#serving.ended));
    await isServing.promise;
    this.#apply(this.#world);
    await this.#engine.committer.settled();
    const { httpProxy } = this.#ports;
    await this.#startEnvoy(
      ca,
      'sidecar',
      { app: 'client' },
      {
        ...{ INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: `${httpProxy}`, UNPRIVILEGED_POD: 'true' },
      },
    );
    await this.#startEnvoy(ca, 'router', { istio: 'ingress' }, {});
  }

  async #startEnvoy(ca: MeshCa, type: string, labels: object, metadata: object): Promise<void> {
    const envoy = await startEnvoy({
      adsPort: this.#serving.ports.secure!,
      tls: await ca.certify(NAMESPACE, type),
      delta: this.#options.delta,
      workers: 2,
      args: ['--drain-time-s', `${DRAIN_SECONDS}`, '--drain-strategy', 'immediate', ...(this.#options.args ?? [])],
      node: {
        id: `${type}~127.0.0.1~${type}.${NAMESPACE}~${NAMESPACE}.svc.cluster.local`,
        metadata: {
          ...{ NAMESPACE, SERVICE_ACCOUNT: type, LABELS: labels, PROXY_CONFIG: { drainDuration: `${DRAIN_SECONDS}s` } },
          ...metadata,
        },
      },
    });
    this.#envoys.push(envoy);
    this.#end.push(() => envoy.stop());
    await envoy.ready();
  }

  async #change(number: number): Promise<void> {
    const { what, world, steps } = changeOf(this.#world, this.#ports, this.#random);
    const staying = new Set(flowsOf(world, this.#ports).map(({ id }) => id));
    // Nobody uses what is about to be removed.
    await this.#load.run(this.#load.flows.filter(({ id }) => staying.has(id)));
    const inSteps = this.#random() < 0.5;
    for (const step of inSteps ? steps : [world]) {
      this.#told.push({ at: Date.now(), what: `#${number} ${what}${step === world ? '' : ' (a step)'}` });
      this.#apply(step);
      if (this.#random() < HASTE.share) await delay(this.#random() * HASTE.ms);
      else await this.#settled();
    }
    this.#world = world;
    if (number % CHECK_EVERY === CHECK_EVERY - 1) await this.#arrive();
  }

  /** In one commit. */
  #apply(world: World): void {
    const release = this.#engine.committer.hold();
    const objects = objectsOf(world, this.#ports, this.#files);
    for (const [key, { kind, apiVersion, metadata }] of this.#objects) {
      if (objects.has(key)) continue;
      this.#engine.objects.delete(kindOf(apiVersion, kind)!.name, metadata.namespace!, metadata.name);
      this.#uids.delete(key);
    }
    for (const [key, object] of objects) {
      if (JSON.stringify(object) === JSON.stringify(this.#objects.get(key))) continue;
      const generation = ++this.#generation;
      const uid = this.#uids.get(key) ?? `uid-${generation}`;
      this.#uids.set(key, uid);
      const metadata = { ...object.metadata, uid, generation };
      this.#engine.objects.upsert(kindOf(object.apiVersion, object.kind)!.name, { ...object, metadata });
    }
    this.#objects = objects;
    release();
  }

  /** Every proxy has acknowledged everything, or takes long for it. */
  async #settled(): Promise<void> {
    const { committer, ads } = this.#engine;
    await committer.settled();
    const until = Date.now() + PATIENCE_MS;
    while (Date.now() < until) {
      if (ads.streams().every(({ types }) => types.every(({ synced }) => synced))) return;
      await delay(5);
    }
  }

  /** Settles when all requests get where the world says, and then runs all flows that the world has. */
  async #arrive(): Promise<void> {
    const flows = flowsOf(this.#world, this.#ports);
    for (const flow of flows) await this.#arrives(flow);
    await this.#load.run(flows);
  }

  async #arrives(flow: Flow): Promise<void> {
    const answers = new Set([...answerersOf(this.#world, flow)].map((backend) => `200 ${backend}`));
    let last = '';
    await poll(`an answer to ${flow.id}`, async () => {
      last = await this.#load.ask(flow);
      return answers.has(last) ? true : undefined;
    }).catch((cause: unknown) => {
      const changes = this.#told.slice(-TOLD).map((each) => each.what);
      const said = this.#envoys.map((envoy) => envoy.log().slice(-500));
      throw new Error(
        [
          `${flow.id}: ${last} instead of ${[...answers].join('/')} after`,
          ...changes,
          ...this.#rejections,
          ...said,
        ].join('\n'),
        { cause },
      );
    });
  }

  #tell({ at, since, flow, what }: Failure): string {
    const before = this.#told.filter((change) => change.at <= at).slice(-TOLD);
    const changes = before.map((change) => `  ${change.at - at} ms: ${change.what}`);
    return [`${what}: ${flow}, took ${at - since} ms, at ${at}`, ...changes].join('\n');
  }
}

async function portsOfRun(): Promise<Ports> {
  const ports = await freePorts(20);
  const take = (count: number): number[] => ports.splice(0, count);
  const [front = 0, tcpFront = 0, httpProxy = 0, egress = 0] = take(4);
  const [http = 0, https = 0, tcp = 0, extra = 0] = take(4);
  return {
    ...{ front, tcpFront, httpProxy, egress, gateway: { http, https, tcp, extra } },
    http: take(3),
    tcp: take(3),
    targets: { http: take(2), http2: take(2), tcp: take(2) },
  };
}

function certificateIn(directory: string): Files {
  const [key, certificate] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const { status, stderr } = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-days', '5'],
    ...['-subj', '/CN=gateway', '-keyout', key, '-out', certificate],
  ]);
  if (status !== 0) throw new Error(`openssl: ${String(stderr)}`);
  return { key, certificate };
}
