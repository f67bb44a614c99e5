import { IdentityMemo } from '../../base/identity-memo.ts';
import type { SharedGate } from '../protocol/canaries.ts';
import type { Marks } from '../protocol/ledger.ts';
import type { Changes } from './forest.ts';
import type { Move } from './move.ts';
import type { Concern, Rollout } from '../rollouts/rollout.ts';
import type { Sent } from '../protocol/sent.ts';
import type { RootUpdate, Span, Update } from './update.ts';

/** From this many names on, it pays to look for another stream that needs the same. */
const MANY = 64;

/** What was computed since the last publication, for all streams that need the same. */
export class SharedWork {
  /** Less than this is not shared. */
  readonly many: number;
  /** From one world to another. */
  readonly moves = new IdentityMemo<Move>();
  /** Of one world, since some publications. */
  readonly updates = new IdentityMemo<Update>();
  /** For whom some changes mean the same. */
  readonly spans = new Map<Changes, Span | undefined>();
  /**
   * The same below one root, for all who see it alike: since some news, the first of it and the last. Below all roots, if
   * their news are alike: by all of these changes.
   */
  readonly rootUpdates = new IdentityMemo<RootUpdate>();
  /** Responses to clients that are owed the same, and what they are owed afterwards. */
  readonly responses = new IdentityMemo<{ readonly sent: Sent | undefined; readonly after: Marks }>();
  /** What is owed after something that it belongs to was sent. */
  readonly followed = new IdentityMemo<Marks>();
  /** What clients that ask for the same have to be waited for. */
  readonly asked = new IdentityMemo<Concern | undefined>();
  /** Whether clients that are owed the same may be sent it. */
  readonly gates = new IdentityMemo<SharedGate>();
  /** What rollouts under way have brought to a batch, by name. */
  readonly brought = new IdentityMemo<ReadonlyMap<string, readonly Rollout[]>>();
  /** Streams that were told to move, and have not compared yet. */
  readonly moving = new IdentityMemo<Concern>();
  /** The rollouts behind several of these moves. */
  readonly moved = new IdentityMemo<readonly Rollout[]>();
  /** What in a response is new to clients that held the same. */
  readonly news = new IdentityMemo<ReadonlySet<string>>();
  /** Which owed assignments lose their last ready endpoint, or bring the first one. */
  readonly readiness = new IdentityMemo<Readonly<Record<'emptied' | 'filled', ReadonlySet<string>>>>();

  constructor(many = MANY) {
    this.many = many;
  }
}
