import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { kindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { meshConfig, object, serviceEntry, sidecar } from '../features/objects.ts';
import type { Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { Directory } from '../features/sources.ts';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { FORMER_MS } from '../../src/engine/peer-history.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { type WorkloadSecrets, startAgent } from './agent.ts';
import {
  type Connection,
  type Received,
  type Reply,
  type Request,
  converse,
  send,
  sendBytes,
  startEcho,
  startMirror,
} from './callers.ts';
import { type MeshCa, createCa } from '../peers/mesh-ca.ts';

/** As in the bootstrap of Istio's agent. */
const agentRuntime = {
  layers: [
    { name: 'static', staticLayer: { 'envoy.reloadable_features.http_reject_path_with_fragment': false } },
    { name: 'admin', adminLayer: {} },
  ],
};

/** `as`: with a certificate; `anybody`: with TLS, and without one. */
export type Caller = Partial<Request> & { readonly as?: Client | 'anybody' | undefined };

/** Of the mesh, in namespaces `shop` and `other`; one with the first's name from an unrelated authority. */
export type Client = 'client' | 'stranger' | 'foreign';

/** Answers that are expected: a status, or `echoed`; otherwise `closed`. */
export type Expectations = readonly (readonly [Caller, number | string])[];

const security =
  (kind: string) => (name: string, spec: object, namespace?: string, annotations?: Record<string, string>) => {
    const made = object('security.istio.io/v1', kind, name, { spec }, namespace);
    return (
      annotations === undefined ? made : { ...made, metadata: { ...made.metadata, annotations } }
    ) as KubernetesObject;
  };

export const peerAuthentication = security('PeerAuthentication');
export const requestAuthentication = security('RequestAuthentication');
export const authorizationPolicy = security('AuthorizationPolicy');

/** A control plane with an authority, and proxies that connect to it with certificates on the secure port. */
export class SecuredMesh {
  readonly program: Program;
  readonly clients: Readonly<Record<Client, WorkloadSecrets>>;
  readonly ca: MeshCa;
  readonly #directory: Directory;
  readonly #onEnd: OnEnd;
  readonly #envoys: RunningEnvoy[] = [];
  /** What this test applied, by file. */
  readonly #applied = new Set<KubernetesObject>();

  private constructor(
    program: Program,
    clients: SecuredMesh['clients'],
    ca: SecuredMesh['ca'],
    directory: Directory,
    onEnd: OnEnd,
  ) {
    this.program = program;
    this.clients = clients;
    this.ca = ca;
    this.#directory = directory;
    this.#onEnd = onEnd;
  }

  static async start(onEnd: OnEnd): Promise<SecuredMesh> {
    const [{ ca, settings }, other] = [await securePort(onEnd), await createCa()];
    const directory = await Directory.create(onEnd);
    const program = await directory.start(settings);
    await program.logged('Ready');
    await program.logged('Signing certificates');
    const clients = {
      client: await ca.certify('shop', 'client'),
      stranger: await ca.certify('other', 'client'),
      foreign: await other.certify('shop', 'client'),
    };
    return new SecuredMesh(program, clients, ca, directory, onEnd);
  }

  /**
   * The workload `server` in namespace `shop`, behind a real Envoy: with a port for HTTP, another one, one for TCP, and
   * one whose protocol is detected.
   */
  async workload() {
    const [mirror, echo] = [await startMirror(this.#onEnd), await startEcho(this.#onEnd)];
    const [http = 0, admin = 0, tcp = 0, detected = 0] = await freePorts(4);
    const ingress = (number: number, protocol: string, name: string, target: number) => ({
      port: { number, name, ...(protocol === '' ? {} : { protocol }) },
      bind: '127.0.0.1',
      captureMode: 'NONE',
      defaultEndpoint: `127.0.0.1:${target}`,
    });
    await this.#write(
      sidecar('default', {
        ingress: [
          ingress(http, 'HTTP', 'http', mirror),
          ingress(admin, 'HTTP', 'http-admin', mirror),
          ingress(tcp, 'TCP', 'tcp', echo),
          ingress(detected, '', 'detected', mirror),
        ],
        egress: [{ hosts: ['./*'] }],
      }),
    );
    const envoy = await this.#proxy('sidecar', 'shop', 'server', { app: 'server' });
    return {
      envoy,
      ports: { http, admin, tcp, detected },
      http: this.#http(http, 'server.shop'),
      admin: this.#http(admin, 'server.shop'),
      tcp: this.#tcp(tcp),
      /** By HTTP, and by TCP to what speaks HTTP. */
      detected: {
        ...this.#http(detected, 'server.shop'),
        /** A request with bytes before it. */
        disguised: (preface: string, { as, alpn }: Caller = {}) =>
          sendBytes(detected, `${preface}GET / HTTP/1.1\r\nhost: server.shop\r\nconnection: close\r\n\r\n`, {
            alpn,
            ...this.#secrets({ as }),
          }),
      },
    };
  }

  /**
   * A router in namespace `edge`, labelled `istio: ingress`. It serves the Gateways that are applied, and sees the hosts
   * `mirror.example.com` and `echo.example.com`, port 80.
   */
  async router() {
    const [mirror, echo] = [await startMirror(this.#onEnd), await startEcho(this.#onEnd)];
    await this.#write(staticEntry('mirror', mirror, 'HTTP', 'edge'), staticEntry('echo', echo, 'TCP', 'edge'));
    const envoy = await this.#proxy('router', 'edge', 'router', { istio: 'ingress' });
    return {
      envoy,
      http: (port: number, host = 'shop.example.com') => this.#http(port, host),
      tcp: (port: number) => this.#tcp(port),
    };
  }

  /** Settles when all proxies have it; it is gone again with `reset`. */
  async apply(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const each of objects) {
      const before = [...this.#applied].find((known) => isSame(known, each));
      if (before !== undefined) this.#applied.delete(before);
      this.#applied.add(each);
    }
    await this.#write(...objects);
  }

  async delete(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const each of objects)
      for (const known of [...this.#applied]) if (isSame(known, each)) this.#applied.delete(known);
    await this.#directory.delete(...objects);
    await this.#committed(objects.map((each) => [each, undefined]));
  }

  /** Deletes what was applied, the newest first. No proxy has rejected anything. */
  async reset(): Promise<void> {
    // A mesh config that is deleted stays in force.
    const defaults = meshConfig('');
    if ([...this.#applied].some((each) => isSame(each, defaults))) await this.apply(defaults);
    for (const each of [...this.#applied].reverse()) await this.delete(each);
    const log = this.program.log.splice(0);
    expect(log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  }

  async #write(...objects: readonly KubernetesObject[]): Promise<void> {
    await this.#directory.apply(...objects);
    await this.#committed(objects.map((each) => [each, contentOf(each)]));
  }

  /** Settles when all objects are as they should be, and the proxies have acknowledged what follows from it. */
  async #committed(objects: readonly (readonly [KubernetesObject, unknown])[]): Promise<void> {
    for (const [{ apiVersion, kind, metadata }, content] of objects) {
      const known = kindOf(apiVersion, kind);
      // Secrets are not kept as objects.
      if (known === undefined) continue;
      const found = () => contentOf(this.program.object(known.name, metadata.namespace ?? '', metadata.name));
      await this.program.committed(() => expect(found(), metadata.name).toEqual(content));
    }
    // Of a change of modes, the time in which servers accept both is over.
    if (objects.some(([{ kind }]) => kind === 'PeerAuthentication'))
      this.program.clock.skip(Math.max(...Object.values(FORMER_MS)));
    const { ads, committer } = this.program.serving.engine;
    await poll('acknowledgements', async () => {
      await committer.settled();
      return ads.streams().every(({ types }) => types.every(({ synced }) => synced)) || undefined;
    });
  }

  /**
   * A sidecar, labelled `app: caller`, that is called on the ports of the services that it reaches.
   *
   * @param objects that stay.
   */
  async caller(namespace: string, ...objects: readonly KubernetesObject[]): Promise<RunningEnvoy> {
    await this.#write(...objects);
    return this.#proxy('sidecar', namespace, 'caller', { app: 'caller' });
  }

  /** A sidecar to which a Pod's connections are redirected; here, there is nothing that does so. */
  redirected(namespace: string): Promise<RunningEnvoy> {
    return this.#proxy('sidecar', namespace, 'redirected', {}, 'REDIRECT');
  }

  async #proxy(
    type: string,
    namespace: string,
    account: string,
    labels: object,
    interception = 'NONE',
  ): Promise<RunningEnvoy> {
    const secrets = await this.ca.certify(namespace, account);
    const agent = await startAgent(secrets);
    this.#onEnd(() => agent.close());
    const envoy = await startEnvoy({
      adsPort: this.program.serving.ports.secure!,
      delta: true,
      tls: secrets,
      node: {
        // Not 127.0.0.1: the services that have their endpoints there are others.
        id: `${type}~10.0.0.1~${account}-1.${namespace}~${namespace}.svc.cluster.local`,
        metadata: {
          NAMESPACE: namespace,
          SERVICE_ACCOUNT: account,
          LABELS: labels,
          INTERCEPTION_MODE: interception,
          ISTIO_VERSION: '1.30.0',
        },
      },
      extraBootstrap: { staticResources: { clusters: [agent.cluster] }, layeredRuntime: agentRuntime },
    });
    this.#onEnd(() => envoy.stop());
    await envoy.ready();
    this.#envoys.push(envoy);
    return envoy;
  }

  #http(port: number, host: string) {
    const reply = (caller: Caller = {}): Promise<Reply | 'closed'> =>
      send(port, { host, ...caller, ...this.#secrets(caller) });
    const status = async (caller: Caller): Promise<number | string> => {
      const answer = await reply(caller);
      return answer === 'closed' ? answer : answer.status;
    };
    /** What the backend received of a request. */
    const received = async (caller: Caller = {}): Promise<Received> => {
      const answer = await reply(caller);
      if (answer === 'closed' || answer.status !== 200) expect.fail(JSON.stringify(answer));
      return JSON.parse(answer.body) as Received;
    };
    return { reply, received, answers: (expected: Expectations) => settle(status, expected) };
  }

  #tcp(port: number) {
    return {
      answers: (expected: Expectations) =>
        settle((caller) => converse(port, { ...caller, ...this.#secrets(caller) }), expected),
    };
  }

  #secrets({ as }: Caller): Pick<Connection, 'secrets'> {
    if (as === undefined) return {};
    return { secrets: as === 'anybody' ? 'none' : this.clients[as] };
  }
}

/** A host with one endpoint on this machine. */
export function staticEntry(name: string, port: number, protocol: string, namespace?: string): KubernetesObject {
  const spec = {
    hosts: [`${name}.example.com`],
    ports: [{ number: 80, name: 'main', protocol }],
    resolution: 'STATIC',
    location: 'MESH_EXTERNAL',
    endpoints: [{ address: '127.0.0.1', ports: { main: port } }],
  };
  return serviceEntry(name, spec, namespace);
}

/** Polls: a listener that was acknowledged takes connections a moment later. */
async function settle(ask: (caller: Caller) => Promise<unknown>, expected: Expectations): Promise<void> {
  let last: unknown[] = [];
  await poll(
    'answers',
    async () => {
      last = [];
      for (const [caller] of expected) last.push([caller, await ask(caller)]);
      return isDeepStrictEqual(last, expected) || undefined;
    },
    { timeoutMs: 5_000 },
  ).catch(() => expect(last).toEqual(expected));
}

function isSame(a: KubernetesObject, b: KubernetesObject): boolean {
  return a.kind === b.kind && a.metadata.name === b.metadata.name && a.metadata.namespace === b.metadata.namespace;
}

/** What of an object changes anything. */
function contentOf(from: KubernetesObject | undefined): unknown {
  if (from === undefined) return undefined;
  const { spec, data } = from as KubernetesObject & { readonly spec?: unknown; readonly data?: unknown };
  return [spec, data, from.metadata.annotations];
}
