import { Alike } from './alike.ts';
import type { Marks } from '../protocol/ledger.ts';
import type { Move } from './move.ts';
import type { Sent } from '../protocol/sent.ts';
import type { ServedIndex } from './served-index.ts';
import type { Update } from './update.ts';

/** From this many names on, it pays to look for another stream that needs the same. */
const MANY = 64;

/** Scopes whose streams return at the same time, times two types. Clients could bring a new one with each stream. */
const MAX_INDEXES = 128;

/** What was computed since the last publication, for all streams that need the same. */
export class SharedWork {
  /** Less than this is not shared. */
  readonly many: number;
  /** From one world to another. */
  readonly moves = new Alike<Move>();
  /** Of one world, since some publications. */
  readonly updates = new Alike<Update>();
  /** What there is for clients with the same subscription. Some 300 KB for 10,000 names each. */
  readonly indexes = new Alike<ServedIndex>(MAX_INDEXES);
  /** Responses to clients that are owed the same, and what they are owed afterwards. */
  readonly responses = new Alike<{ readonly sent: Sent | undefined; readonly after: Marks }>();
  /** What is owed after something that it belongs to was sent. */
  readonly followed = new Alike<Marks>();
  /** What in a response is new to clients that held the same. */
  readonly news = new Alike<ReadonlySet<string>>();

  constructor(many = MANY) {
    this.many = many;
  }
}
