import { Alike } from './alike.ts';
import type { Move } from './move.ts';
import type { Sent } from './sent.ts';
import type { ServedIndex } from './served-index.ts';

/** What was worked out since the last publication, for all streams that need the same. */
export class SharedWork {
  /** From one world to another. */
  readonly moves = new Alike<Move>();
  /** What there is for those who have subscribed to the same. */
  readonly indexes = new Alike<ServedIndex>();
  /** Responses to those who are owed the same. */
  readonly responses = new Alike<Sent | undefined>();
}
