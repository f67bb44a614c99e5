import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CDS, EDS, ServedMesh } from './served-mesh.ts';
import { type Response, XdsClient } from './xds-client.ts';

const NODE = { id: 'sidecar~10.0.0.1~a.b~b.svc.cluster.local' };

/** What a script says, in terms that both kinds of stream have. */
class Script {
  readonly client: XdsClient;
  readonly #delta: boolean;
  readonly #names = new Map<string, string[]>();
  #first = true;

  constructor(mesh: ServedMesh, delta: boolean) {
    this.client = new XdsClient(mesh.server.port, delta);
    this.#delta = delta;
  }

  /** The names from now on; none at first: everything. */
  subscribe(typeUrl: string, names: readonly string[], last?: Response): void {
    const before = this.#names.get(typeUrl) ?? [];
    this.#names.set(typeUrl, [...names]);
    const node = this.#first ? NODE : undefined;
    this.#first = false;
    if (this.#delta) {
      const subscribe = names.filter((name) => !before.includes(name));
      const unsubscribe = before.filter((name) => !names.includes(name));
      this.client.send({ typeUrl, node, subscribe, unsubscribe });
    } else {
      this.client.send({ typeUrl, node, names, nonce: last?.nonce ?? '', version: last?.version ?? '' });
    }
  }

  async next(typeUrl: string): Promise<Response> {
    return this.client.next(typeUrl);
  }

  ack(response: Response): void {
    const names = this.#names.get(response.typeUrl) ?? [];
    const { typeUrl, nonce, version } = response;
    this.client.send(this.#delta ? { typeUrl, nonce } : { typeUrl, nonce, version, names });
  }

  nack(response: Response, error: string, accepted = ''): void {
    const names = this.#names.get(response.typeUrl) ?? [];
    const { typeUrl, nonce } = response;
    this.client.send(this.#delta ? { typeUrl, nonce, error } : { typeUrl, nonce, version: accepted, names, error });
  }

  /** The next response, accepted; its bodies. */
  async take(typeUrl: string): Promise<string[]> {
    const response = await this.next(typeUrl);
    this.ack(response);
    return [...response.bodies.values()].sort();
  }
}

describe.each([
  ['delta', true],
  ['state of the world', false],
])('over %s', (_, delta) => {
  let mesh: ServedMesh;
  let script: Script;

  beforeEach(async () => {
    mesh = await ServedMesh.start();
    script = new Script(mesh, delta);
  });

  afterEach(async () => {
    script.client.close();
    await mesh.stop();
  });

  test('a wildcard gets everything, and then changes', async () => {
    mesh.publish({ [CDS]: { a: '1', b: '1' } });
    script.subscribe(CDS, []);
    expect(await script.take(CDS)).toEqual(['a@1', 'b@1']);
    mesh.publish({ [CDS]: { b: '2' } });
    expect(await script.take(CDS)).toEqual(delta ? ['b@2'] : ['a@1', 'b@2']);
  });

  test('a wildcard is answered although there is nothing', async () => {
    script.subscribe(CDS, []);
    expect(await script.take(CDS)).toEqual([]);
  });

  test('names get what was asked for, and nothing else', async () => {
    mesh.publish({ [EDS]: { a: '1', b: '1', c: '1' } });
    script.subscribe(EDS, ['a', 'b']);
    expect(await script.take(EDS)).toEqual(['a@1', 'b@1']);
    mesh.publish({ [EDS]: { c: '2' } });
    mesh.publish({ [EDS]: { a: '2' } });
    expect(await script.take(EDS)).toEqual(['a@2']);
  });
});
