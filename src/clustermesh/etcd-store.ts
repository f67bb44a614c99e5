import type { Clock } from '../base/clock.ts';
import { printRefusal } from '../clusters/refusal.ts';
import type { EtcdAccess } from '../etcd/access.ts';
import { connectEtcd, type EtcdConnection } from '../etcd/connection.ts';
import { EtcdError } from '../etcd/error.ts';
import { keysUnder } from '../etcd/keys.ts';
import { Leases } from '../etcd/leases.ts';
import { list } from '../etcd/list.ts';
import { deleteRange, put } from '../etcd/messages.ts';
import { contentHash } from '../model/hash.ts';
import { configFileIn } from './config-file.ts';
import { readEtcdConfig } from './etcd-config.ts';
import type { LeasedConnection, LeasedStore, StoredKey } from './key-writer.ts';

export interface EtcdStoreOptions {
  /** A configuration file of an etcd client. It is read for each connection. */
  readonly file: string;
  /** See `KeyWriterOptions.open`. */
  readonly onLost: (keys: readonly string[]) => void;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Seconds. As Cilium has it. */
const TTL = 15 * 60;
const PAGE = 256;
/** Of one prefix. */
const MOST_KEYS = 100_000;
const MOST_BYTES_OF_KEYS = 64 << 20;

/** Keys in an etcd. */
export class EtcdStore implements LeasedStore {
  readonly #options: EtcdStoreOptions;
  readonly #leases: Leases;

  constructor(options: EtcdStoreOptions) {
    this.#options = options;
    this.#leases = new Leases({ ...options, ttl: TTL });
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<LeasedConnection> {
    const { file, clock, random } = this.#options;
    const connection = await connectEtcd({ access: await accessIn(file), clock, random }, { signal });
    const keeping = this.#leases.run(connection, { signal });
    return connected(connection, this.#leases, keeping, signal);
  }
}

async function accessIn(file: string): Promise<EtcdAccess> {
  const content = await configFileIn(file);
  if (content === undefined) throw new Error(`${file} is not there, or does not contain "endpoints:"`);
  const read =
    'text' in content ? readEtcdConfig(content.text) : { refused: { field: '', message: content.unreadable } };
  if ('access' in read) return read.access;
  throw new Error(`${file} ${printRefusal(read.refused)}`);
}

function connected(
  connection: EtcdConnection,
  leases: Leases,
  keeping: Promise<void>,
  signal: AbortSignal,
): LeasedConnection {
  return {
    endpoint: connection.endpoint,
    ended: connection.ended,
    get failure() {
      return connection.failure;
    },
    async put(key, value) {
      const lease = await leases.hold(key, connection, { signal });
      try {
        await connection.call(put, { key, value: Buffer.from(value), lease }, { signal });
      } catch (error) {
        if (!(error instanceof EtcdError) || error.reason !== 'NotFound') throw error;
        leases.lose(lease);
      }
    },
    async delete(key) {
      await connection.call(deleteRange, { key }, { signal });
      leases.release(key);
    },
    async list(prefix) {
      const found: StoredKey[] = [];
      let [bytes, isAll] = [0, true];
      const add = (key: string, valueHash: string, isOurs: boolean): boolean => {
        found.push({ key, valueHash, isOurs });
        bytes += key.length;
        return (isAll = found.length <= MOST_KEYS && bytes <= MOST_BYTES_OF_KEYS);
      };
      await list({
        ...{ connection, signal, keys: keysUnder(prefix), pageSize: PAGE },
        onEntry: ({ key, value, lease }) => add(key, contentHash(value), leases.holds(key, lease)),
        onTooLarge: (key) => add(key, '', false),
      });
      if (!isAll) throw new Error(`${prefix} has more than ${MOST_KEYS} keys, or ${MOST_BYTES_OF_KEYS} bytes of them`);
      return found;
    },
    close() {
      connection.close();
      return keeping;
    },
  };
}
