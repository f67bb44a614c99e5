import { expect } from 'vitest';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { type MessageOf, typeUrl } from '../../src/envoy/encode/proto.ts';
import { type NameOf, type Node, type Response, type SecureCall, XdsClient } from '../conformance/xds-client.ts';

import { testProtos } from '../harness/mesh.ts';
import { Waiters } from './waiters.ts';

export const CDS = typeUrl(types.cluster);
export const EDS = typeUrl(types.endpoint);
export const LDS = typeUrl(types.listener);
export const RDS = typeUrl(types.route);
export const SDS = typeUrl(types.secret);

const shortNames: Readonly<Record<string, string>> = { [CDS]: 'cds', [EDS]: 'eds', [LDS]: 'lds', [RDS]: 'rds' };

/** The name is the first field of all four. */
const nameOf: NameOf = (resource) => Buffer.from(resource.subarray(2, 2 + resource[1]!)).toString();

/**
 * Does what Envoy does with what it is sent: asks for all clusters and then for all listeners, subscribes to the
 * assignments and tables that these name, keeps what it was given until it is told otherwise, acknowledges everything.
 */
export class Proxy {
  readonly id: string;
  readonly delta: boolean;
  readonly client: XdsClient;
  readonly #held = new Map<string, Map<string, Uint8Array>>([CDS, EDS, LDS, RDS].map((type) => [type, new Map()]));
  readonly #names = new Map<string, ReadonlySet<string>>();
  readonly #waiters = new Waiters();
  #changes: Record<string, string[]> = {};
  readonly #last = new Map<string, Response>();
  #ended: unknown;
  /** Says why it rejects a response; undefined: it takes it. */
  rejects: (response: Response) => string | undefined = () => undefined;
  /** Answers that it does not give yet; undefined: it answers at once. */
  #unanswered: { readonly response: Response; readonly error: string | undefined }[] | undefined;

  /** @param secure absent: plaintext. */
  constructor(port: number, delta: boolean, node: Node, secure?: SecureCall) {
    this.id = node.id;
    this.delta = delta;
    this.client = new XdsClient(port, delta, nameOf, secure);
    this.client.send({ typeUrl: CDS, node });
    void this.#run();
  }

  /** Waits until what it holds is like this. */
  until(assertion: (proxy: this) => void): Promise<void> {
    return this.#waiters.until(() => {
      if (this.#ended !== undefined) expect.fail(`the stream has ended: ${String(this.#ended)}`);
      assertion(this);
    });
  }

  /**
   * What came since the last call, by type: `+` new, `~` changed, `-` removed, `=` sent although it is held. In state of
   * the world, unchanged clusters and listeners beside changed ones do not count.
   */
  takeChanges(): Readonly<Record<string, readonly string[]>> {
    const changes = this.#changes;
    this.#changes = {};
    return Object.fromEntries(Object.entries(changes).map(([type, names]) => [type, names.sort()]));
  }

  held(type: string): ReadonlyMap<string, Uint8Array> {
    return this.#held.get(type)!;
  }

  /** Names, without those that every sidecar has. */
  clusters(): string[] {
    return [...this.held(CDS).keys()].filter((name) => name.includes('|')).sort();
  }

  cluster(name: string): MessageOf<typeof types.cluster> {
    return testProtos().decode(types.cluster, this.held(CDS).get(name) ?? expect.fail(`there is no cluster ${name}`));
  }

  listeners(): string[] {
    return [...this.held(LDS).keys()].sort();
  }

  /** By cluster: `address:port`, with `@region/zone` where there is one, and `, then` for each step of priority. */
  endpoints(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries(
      [...this.held(EDS)].sort().map(([name, bytes]) => {
        const { endpoints = [] } = testProtos().decode(types.endpoint, bytes);
        return [
          name,
          endpoints
            .flatMap(({ lbEndpoints = [], locality, priority = 0 }) =>
              lbEndpoints.map(({ endpoint }) => {
                const { address, portValue } = endpoint?.address?.socketAddress ?? {};
                const place = locality?.region ? `@${locality.region}/${locality.zone ?? ''}` : '';
                return `${address}:${portValue}${place}${', then'.repeat(priority)}`;
              }),
            )
            .sort(),
        ];
      }),
    );
  }

  /** Of one table: by virtual host, `match -> cluster weight, cluster weight` of its routes. Without the catch-all. */
  routes(table: string): Readonly<Record<string, readonly string[]>> {
    const bytes = this.held(RDS).get(table);
    if (bytes === undefined) expect.fail(`there is no table ${table}`);
    const { virtualHosts = [] } = testProtos().decode(types.route, bytes);
    return Object.fromEntries(
      virtualHosts
        .filter(({ name }) => name !== 'allow_any' && name !== 'block_all')
        .map(({ name, routes = [] }) => [
          name,
          routes.map(({ match, route, redirect, directResponse }) => {
            const path = match?.path ?? match?.prefix ?? match?.safeRegex?.regex ?? match?.pathSeparatedPrefix;
            const clusters =
              route?.weightedClusters?.clusters?.map((each) => `${each.name} ${each.weight?.value ?? 0}`).join(', ') ??
              route?.cluster;
            return `${path} -> ${clusters ?? (redirect ? 'redirect' : directResponse?.status)}`;
          }),
        ]),
    );
  }

  close(): void {
    this.client.close();
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        this.#take(await this.client.next());
        this.#waiters.wake();
      }
    } catch (error) {
      this.#ended = error;
      this.#waiters.wake();
    }
  }

  #take(response: Response): void {
    const { typeUrl } = response;
    const error = this.rejects(response);
    if (error === undefined) this.#apply(response);
    if (this.#unanswered === undefined) this.#answer(response, error);
    else this.#unanswered.push({ response, error });
    if (typeUrl === CDS) this.#subscribe(EDS, assignmentsIn(this.held(CDS)));
    if (typeUrl === LDS) this.#subscribe(RDS, tablesIn(this.held(LDS)));
    // Listeners are asked for when the first clusters are warm.
    if (typeUrl === EDS && !this.#names.has(LDS)) this.#subscribe(LDS, new Set());
    this.#last.set(typeUrl, response);
  }

  /** From now on it takes what it is sent without a word. */
  fallSilent(): void {
    this.#unanswered ??= [];
  }

  /** Says what it owes, and answers at once again. */
  speak(): void {
    const responses = this.#unanswered ?? [];
    this.#unanswered = undefined;
    for (const { response, error } of responses) this.#answer(response, error);
  }

  #answer({ typeUrl, nonce, version }: Response, error: string | undefined): void {
    const names = [...(this.#names.get(typeUrl) ?? [])];
    const last = error === undefined ? version : (this.#last.get(typeUrl)?.version ?? '');
    const answer = { typeUrl, nonce, ...(error !== undefined && { error }) };
    this.client.send(this.delta ? answer : { ...answer, version: last, names });
  }

  #subscribe(typeUrl: string, names: ReadonlySet<string>): void {
    const before = this.#names.get(typeUrl);
    const gone = [...(before ?? [])].filter((name) => !names.has(name));
    const added = [...names].filter((name) => before?.has(name) !== true);
    if (before !== undefined && gone.length === 0 && added.length === 0) return;
    this.#names.set(typeUrl, names);
    for (const name of gone) this.#held.get(typeUrl)!.delete(name);
    const { nonce = '', version = '' } = this.#last.get(typeUrl) ?? {};
    this.client.send(
      this.delta ? { typeUrl, subscribe: added, unsubscribe: gone } : { typeUrl, nonce, version, names: [...names] },
    );
  }

  #apply({ typeUrl, resources, removed }: Response): void {
    const held = this.#held.get(typeUrl)!;
    const full = !this.delta && (typeUrl === CDS || typeUrl === LDS);
    const gone = full ? [...held.keys()].filter((name) => !resources.has(name)) : removed;
    const changes = (this.#changes[shortNames[typeUrl] ?? typeUrl] ??= []);
    for (const name of gone) if (held.delete(name)) changes.push(`-${name}`);
    const names = this.#names.get(typeUrl);
    for (const [name, bytes] of resources) {
      // It was on its way when it was given up.
      if (names?.has(name) === false && typeUrl !== LDS) continue;
      const before = held.get(name);
      held.set(name, bytes);
      if (before === undefined) changes.push(`+${name}`);
      else if (!Buffer.from(before).equals(bytes)) changes.push(`~${name}`);
      else if (!full) changes.push(`=${name}`);
    }
  }
}

function assignmentsIn(clusters: ReadonlyMap<string, Uint8Array>): Set<string> {
  return new Set(
    [...clusters].flatMap(([name, bytes]) => {
      const { type, edsClusterConfig } = testProtos().decode(types.cluster, bytes);
      return type === 'EDS' ? [edsClusterConfig?.serviceName || name] : [];
    }),
  );
}

function tablesIn(listeners: ReadonlyMap<string, Uint8Array>): Set<string> {
  const json = [...listeners.values()].map((bytes) => JSON.stringify(testProtos().toJson(types.listener, bytes)));
  return new Set(json.flatMap((text) => [...text.matchAll(/"routeConfigName":"([^"]*)"/g)].map(([, name]) => name!)));
}
