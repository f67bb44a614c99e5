import type { ServedMesh } from './served-mesh.ts';
import { type Response, XdsClient } from './xds-client.ts';

export const NODE = { id: 'sidecar~10.0.0.1~a.b~b.svc.cluster.local', cluster: 'a.b' };

/** A client in terms that both kinds of stream have, so that one script runs over either. */
export class Script {
  readonly client: XdsClient;
  readonly delta: boolean;
  readonly #names = new Map<string, readonly string[]>();
  readonly #last = new Map<string, Response>();
  #first = true;

  constructor(mesh: ServedMesh, delta: boolean) {
    this.client = new XdsClient(mesh.server.port!, delta);
    this.delta = delta;
  }

  /** Wants these names from now on; none at first: everything. */
  subscribe(typeUrl: string, names: readonly string[], initial?: Readonly<Record<string, string>>): void {
    const before = this.#names.get(typeUrl) ?? [];
    this.#names.set(typeUrl, names);
    const node = this.#first ? NODE : undefined;
    this.#first = false;
    if (this.delta) {
      const subscribe = names.filter((name) => !before.includes(name));
      const unsubscribe = before.filter((name) => !names.includes(name));
      this.client.send({ typeUrl, node, subscribe, unsubscribe, ...(initial && { initial }) });
    } else {
      const { nonce = '', version = '' } = this.#last.get(typeUrl) ?? {};
      this.client.send({ typeUrl, node, names, nonce, version });
    }
  }

  async next(typeUrl: string): Promise<Response> {
    const response = await this.client.next(typeUrl);
    this.#last.set(typeUrl, response);
    return response;
  }

  ack({ typeUrl, nonce, version }: Response): void {
    const names = this.#names.get(typeUrl) ?? [];
    this.client.send(this.delta ? { typeUrl, nonce } : { typeUrl, nonce, version, names });
  }

  /** `accepted`: the version of the last response that was accepted in full. */
  nack({ typeUrl, nonce }: Response, error: string, accepted = ''): void {
    const names = this.#names.get(typeUrl) ?? [];
    this.client.send(this.delta ? { typeUrl, nonce, error } : { typeUrl, nonce, version: accepted, names, error });
  }

  /** The bodies of the next response, which is accepted. */
  async take(typeUrl: string): Promise<string[]> {
    const response = await this.next(typeUrl);
    this.ack(response);
    return bodiesOf(response);
  }
}

export function bodiesOf(response: Response): string[] {
  return [...response.bodies.values()].sort();
}
