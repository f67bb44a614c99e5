import type { Differences } from '../store/differences.ts';
import type { News } from '../store/forest.ts';
import type { FormerWorld } from '../store/former-world.ts';
import type { Recipient } from '../rollouts/recipient.ts';
import { Concern, NO_ROLLOUTS, type Rollout } from '../rollouts/rollout.ts';
import type { SharedWork } from '../store/shared-work.ts';
import type { Sight, WorldView } from '../store/world.ts';

export interface UnseenContext {
  readonly recipient: Recipient;
  /** Remembers a world as it is now. */
  remember(view: WorldView): FormerWorld;
  move(before: FormerWorld, after: WorldView, news: readonly News[]): Differences;
  update(sight: Sight, news: readonly News[]): Differences;
  /** A new one with each publication. */
  shared(): SharedWork;
}

/** What has happened to a stream's world since the stream last looked. */
export class Unseen {
  readonly #context: UnseenContext;
  /** Published since the stream's last turn, oldest first; shared by all streams of a root. A turn empties it. */
  #news: News[] = [];
  /** What the stream saw before a move that is yet to be carried out; {@link #news} refers to it. */
  #former: FormerWorld | undefined;
  /** The looks that are due because of this move; and what has been published since, as part of rollouts. */
  #moving: Concern[] = [];
  #overtaken: News[] = [];

  constructor(context: UnseenContext) {
    this.#context = context;
  }

  get isEmpty(): boolean {
    return this.#news.length === 0 && this.#former === undefined;
  }

  published(news: News): void {
    if (this.#former === undefined) this.#news.push(news);
    else if (news.look !== undefined) this.#overtaken.push(news);
    news.look?.begin(this.#context.recipient);
  }

  /** The two worlds are compared when the stream looks: of several moves, only the world before the first one counts. */
  moved(from: WorldView, rollouts: readonly Rollout[]): void {
    this.#former ??= this.#context.remember(from);
    if (rollouts.length === 0) return;
    const look = this.#context.shared().moving.of([rollouts], () => Concern.look(rollouts));
    this.#moving.push(look);
    look.begin(this.#context.recipient);
  }

  /**
   * The stream looks.
   * @param mark is called with the differences, and with the rollouts that all of them are part of.
   * @returns whether there was a move.
   */
  look(view: WorldView, mark: (differences: Differences, rollouts: readonly Rollout[]) => void): boolean {
    const former = this.#former;
    const rollouts = this.#moving.length === 0 ? NO_ROLLOUTS : this.#movingRollouts();
    // What changed before, the client may have because it moved back and forth.
    if (this.#news.length > 0) mark(this.#context.update(former ?? view, this.#news), rollouts);
    if (former !== undefined) mark(this.#context.move(former, view, this.#overtaken), rollouts);
    this.forget();
    return former !== undefined;
  }

  #movingRollouts(): readonly Rollout[] {
    const looks = this.#moving;
    const { moved } = this.#context.shared();
    return moved.of(looks, () => [...new Set(looks.flatMap((look) => [...look.rollouts]))]);
  }

  /** It is known what concerns this client of all that has been published, or the client is gone. */
  forget(): void {
    const { recipient } = this.#context;
    for (const { look } of this.#news) look?.end(recipient);
    this.#news.length = 0;
    if (this.#former === undefined) return;
    for (const { look } of this.#overtaken) look?.end(recipient);
    for (const look of this.#moving) look.end(recipient);
    this.#former.release();
    this.#former = undefined;
    this.#moving = [];
    this.#overtaken = [];
  }
}
