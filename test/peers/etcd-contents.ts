import { request } from 'undici';

/** Bytes are in base64, numbers are decimal strings. */
interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly mod_revision: string;
}

/** What the API server keeps up to date for itself. */
const OF_THE_SERVER = /^\/registry\/(leases|masterleases|peerserverleases)\//;

const ALL = { key: encode('/registry/'), range_end: encode('/registry0') };

/** All that an API server has stored in its etcd: remembered once, and restored. */
export class EtcdContents {
  readonly #url: string;
  #remembered: ReadonlyMap<string, KeyValue> = new Map();

  /** @param url of etcd; plaintext, without credentials. */
  constructor(url: string) {
    this.#url = url;
  }

  async remember(): Promise<void> {
    this.#remembered = await this.#read();
  }

  /** Writes and deletes what differs from what it remembers. */
  async restore(): Promise<void> {
    const present = await this.#read();
    for (const { key } of present.values())
      if (!this.#remembered.has(key) && !OF_THE_SERVER.test(decode(key))) await this.#call('deleterange', { key });
    for (const { key, value, mod_revision } of this.#remembered.values())
      if (present.get(key)?.mod_revision !== mod_revision && !OF_THE_SERVER.test(decode(key)))
        await this.#call('put', { key, value });
    // What was written has another revision now.
    await this.remember();
  }

  async #read(): Promise<ReadonlyMap<string, KeyValue>> {
    const { kvs = [] } = (await this.#call('range', ALL)) as { readonly kvs?: readonly KeyValue[] };
    return new Map(kvs.map((each) => [each.key, each]));
  }

  /** One of the calls of etcd's KV service, as JSON over HTTP. */
  async #call(name: 'range' | 'put' | 'deleterange', body: object): Promise<unknown> {
    const answer = await request(`${this.#url}/v3/kv/${name}`, { method: 'POST', body: JSON.stringify(body) });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`etcd: ${name}: ${answer.statusCode} ${text}`);
    return JSON.parse(text);
  }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}
