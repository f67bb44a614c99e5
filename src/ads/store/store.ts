import { Brought, type BroughtIn, type BroughtNames } from '../rollouts/brought.ts';
import { changesByRoot } from './changes-by-root.ts';
import type { ContentHasher } from './content-hash.ts';
import type { Differences } from './differences.ts';
import { FormerRoot, FormerWorld } from './former-world.ts';
import { type Changes, ChangeSet, List, type Member, type News, Root } from './forest.ts';
import { Move } from './move.ts';
import type { Keys } from './names.ts';
import type { ListChange, MemberChange, Publication, World } from './publication.ts';
import type { EncodedResource } from './resource.ts';
import { Concern, joinRollouts, NO_ROLLOUTS, type Rollout } from '../rollouts/rollout.ts';
import { type Batch, Served } from './served.ts';
import { SharedBatches } from './shared-batches.ts';
import { SharedWork } from './shared-work.ts';
import { updateOf } from './shared-updates.ts';
import type { ResourceType } from '../types.ts';
import { Viewpoints } from './viewpoints.ts';
import { type Sight, WorldView } from './world.ts';

/**
 * What the published commits made: a forest of lists, and the worlds that streams see of it. Applying a publication
 * costs in proportion to what it changes: nothing iterates over all names, all lists or all streams.
 */
export class Store {
  readonly #hasher: ContentHasher;
  readonly #lists = new Map<string, List>();
  readonly #roots = new Map<List, Root>();
  readonly #worlds = new Map<string, WorldView>();
  readonly #viewpoints = new Viewpoints();
  /** Type -> name -> the lists that hold it. */
  readonly #holders = new Map<string, Map<string, List | Set<List>>>();
  readonly #served = new Map<string, Served>();
  readonly shared = new SharedBatches();
  readonly #brought = new Brought();
  /** Roots and worlds as they are since the last publication. */
  readonly #formers = new Map<Root, FormerRoot>();
  readonly #formerWorlds = new Map<WorldView, FormerWorld>();
  /** Starts afresh with each publication. */
  work: SharedWork;
  readonly #many: number | undefined;
  #lastId = 0;
  #publication = 0;
  /** Maps of variants that this publication has made: it may change them. */
  #variants = new WeakMap<ReadonlyMap<string, Served>, Map<string, Served>>();

  /** @param many overrides the default of {@link SharedWork}. */
  constructor(hasher: ContentHasher, many?: number) {
    this.#hasher = hasher;
    this.#many = many;
    this.work = new SharedWork(many);
  }

  /** Members and lists of a publication; the caller, which knows the streams, handles its worlds. */
  apply(publication: Pick<Publication, 'members' | 'lists'>): void {
    this.shared.published(++this.#publication);
    this.#variants = new WeakMap();
    this.#formers.clear();
    this.#formerWorlds.clear();
    this.work = new SharedWork(this.#many);
    const touched = new Map<List, ChangeSet>();
    for (const change of publication.members) this.#setMember(change, touched);
    const moved = new Set<Root>();
    for (const change of publication.lists) this.#setChildren(change, moved);
    for (const [list, { byType }] of touched) for (const former of list.formers ?? []) former.note(list, byType);
    const looks = new Map<Changes, Concern | undefined>();
    for (const [root, changes, lists] of changesByRoot(touched, moved, this.shared)) {
      this.shared.changed(root, changes.keys());
      if (!looks.has(changes)) looks.set(changes, lookAt(changes));
      const news = { root, changes, lists, look: looks.get(changes) };
      for (const world of root.worlds) world.changed(news);
    }
    for (const list of touched.keys()) this.#drop(list);
    for (const change of publication.lists) this.#drop(this.#lists.get(change.list));
  }

  /** The world of these roots, shared by all that have the same. To be given back with {@link leave}. */
  enter(world: World): WorldView {
    const roots = [...new Set(world.roots)];
    const key = JSON.stringify([roots, world.qualifiers, world.excluded ?? []]);
    let view = this.#worlds.get(key);
    if (view === undefined) {
      const held = roots.map((root) => this.#root(root));
      view = new WorldView(key, held, this.#viewpoints.of(world), this.#holders, this.shared);
      this.#worlds.set(key, view);
      for (const root of held) root.worlds.add(view);
    }
    view.holders++;
    return view;
  }

  leave(view: WorldView): void {
    if (--view.holders > 0) return;
    this.#worlds.delete(view.key);
    this.#viewpoints.release(view.viewpoint);
    for (const root of view.roots) {
      root.worlds.delete(view);
      if (root.worlds.size > 0) continue;
      this.#roots.delete(root.list);
      root.dissolve();
      this.shared.dissolved(root);
      this.#drop(root.list);
    }
  }

  /** What a world is like now, for a stream that leaves it and compares later. The caller must release it. */
  remember(view: WorldView): FormerWorld {
    const known = this.#formerWorlds.get(view);
    if (known !== undefined && known.streams > 0) return known.hold();
    const roots = view.roots.map((root) => {
      let former = this.#formers.get(root);
      if (former === undefined || former.users === 0) this.#formers.set(root, (former = new FormerRoot(root)));
      return former;
    });
    const former = new FormerWorld(roots, view, this.#holders);
    this.#formerWorlds.set(view, former);
    return former.hold();
  }

  /**
   * What changes for a stream that moves from one world to another now.
   * @param news of the new world since the stream was told to move, as far as they are part of rollouts.
   */
  move(before: FormerWorld, after: WorldView, news: readonly News[] = []): Move {
    return this.work.moves.of([before, after, ...news], () => new Move(before, after, news));
  }

  /** Drops what is kept for streams that may need the same. */
  forget(): void {
    this.shared.clear();
    this.work = new SharedWork(this.#many);
  }

  /** What changes for a stream that looks at its world again. */
  update(sight: Sight, news: readonly News[]): Differences {
    return updateOf(sight, news, this.work, this.#holders);
  }

  /** What rollouts under way have brought to a batch: the same objects for all worlds that have it. */
  broughtIn(batch: Batch, { roots, viewpoint }: WorldView, { typeUrl }: ResourceType): BroughtIn {
    const branch = this.shared.branchOf(batch);
    const { epoch } = this.#brought;
    const within = (lists: Keys<List>): BroughtNames => this.#brought.in(lists, viewpoint, typeUrl, batch);
    if (branch === undefined) {
      const work = (): BroughtNames => roots.map(({ lists }) => within(lists)).reduce(both, NOTHING_BROUGHT);
      const names = this.work.brought.of([batch, viewpoint, epoch, ...roots], work);
      return { names, whole: NO_ROLLOUTS, isCommon: false };
    }
    const { top, lists, isCommon } = branch;
    return {
      names: this.work.brought.of([batch, epoch], () => within(lists)),
      whole: roots.reduce((found, root) => joinRollouts(found, this.#brought.along(root, top)), NO_ROLLOUTS),
      isCommon,
    };
  }

  /** A resource that is in no list: made for one answer. */
  once(resource: EncodedResource): Served {
    return new Served(resource, ++this.#lastId, this.#hasher);
  }

  get size(): { readonly lists: number; readonly roots: number; readonly worlds: number; readonly resources: number } {
    return {
      lists: this.#lists.size,
      roots: this.#roots.size,
      worlds: this.#worlds.size,
      resources: this.#served.size,
    };
  }

  #list(key: string): List {
    let list = this.#lists.get(key);
    if (list === undefined) this.#lists.set(key, (list = new List(key)));
    return list;
  }

  #root(key: string): Root {
    const list = this.#list(key);
    let root = this.#roots.get(list);
    if (root === undefined) this.#roots.set(list, (root = new Root(list)));
    return root;
  }

  #setMember(change: MemberChange, touched: Map<List, ChangeSet>): void {
    if (change.resource === undefined && !this.#lists.has(change.list)) return;
    const list = this.#list(change.list);
    const { typeUrl, name, qualifier } = change;
    const was = list.exactly(typeUrl, name, qualifier);
    const now = change.resource === undefined ? undefined : this.#serve(change.resource, was);
    if (was === now) return;
    let members = list.members.get(typeUrl);
    if (members === undefined) list.members.set(typeUrl, (members = new Map<string, Member>()));
    const member = this.#withVariant(members.get(name), qualifier, now);
    if (member === undefined) {
      members.delete(name);
      if (members.size === 0) list.members.delete(typeUrl);
      this.#unhold(typeUrl, name, list);
    } else {
      members.set(name, member);
      this.#hold(typeUrl, name, list);
    }
    list.changedIn = this.#publication;
    if (now !== undefined) now.holders++;
    if (was !== undefined) this.#release(was);
    const { rollouts = NO_ROLLOUTS } = change;
    if (now === undefined) this.#brought.memberLeft(list, typeUrl, name, qualifier);
    else this.#brought.member(list, typeUrl, name, qualifier, rollouts);
    changesOf(touched, list).add(typeUrl, name, { qualifier, was, now, rollouts });
  }

  /** A name may have thousands of variants: their map is copied once per publication. */
  #withVariant(member: Member | undefined, qualifier: string, item: Served | undefined): Member | undefined {
    if (qualifier === '' && (member === undefined || member instanceof Served)) return item;
    let variants = member === undefined || member instanceof Served ? undefined : this.#variants.get(member);
    if (variants === undefined) {
      variants = new Map(
        member instanceof Served ? [['', member]] : (member as ReadonlyMap<string, Served> | undefined),
      );
      this.#variants.set(variants, variants);
    }
    if (item === undefined) variants.delete(qualifier);
    else variants.set(qualifier, item);
    const plain = variants.get('');
    if (variants.size === 1 && plain !== undefined) return plain;
    return variants.size === 0 ? undefined : variants;
  }

  #setChildren(change: ListChange, moved: Set<Root>): void {
    const list = this.#list(change.list);
    const before = new Set(list.children);
    const children = [...new Set(change.children ?? [])].map((key) => this.#list(key));
    const after = new Set(children);
    list.children = children;
    list.changedIn = this.#publication;
    const { rollouts = NO_ROLLOUTS } = change;
    for (const child of after) if (!before.has(child)) this.#addEdge(list, child, moved, rollouts);
    for (const child of before) if (!after.has(child)) this.#removeEdge(list, child, moved, rollouts);
  }

  #addEdge(list: List, child: List, moved: Set<Root>, rollouts: readonly Rollout[]): void {
    child.parents++;
    this.#brought.child(list, child, rollouts);
    for (const root of [...list.roots]) {
      root.gain(child, rollouts);
      moved.add(root);
    }
  }

  #removeEdge(list: List, child: List, moved: Set<Root>, rollouts: readonly Rollout[]): void {
    child.parents--;
    this.#brought.childLeft(list, child);
    for (const root of [...list.roots]) {
      root.lose(child, rollouts);
      moved.add(root);
    }
    this.#drop(child);
  }

  /** One object per content: what a client holds is compared by identity, even if many lists carry the same bytes. */
  #serve(resource: EncodedResource, was: Served | undefined): Served {
    if (was !== undefined && same(was.resource, resource)) return was;
    const known = this.#served.get(resource.version);
    if (known !== undefined && same(known.resource, resource)) return known;
    const served = new Served(resource, ++this.#lastId, this.#hasher);
    if (known === undefined) this.#served.set(resource.version, served);
    return served;
  }

  #release(served: Served): void {
    if (--served.holders > 0) return;
    if (this.#served.get(served.version) === served) this.#served.delete(served.version);
  }

  #hold(typeUrl: string, name: string, list: List): void {
    let byName = this.#holders.get(typeUrl);
    if (byName === undefined) this.#holders.set(typeUrl, (byName = new Map<string, List | Set<List>>()));
    const holders = byName.get(name);
    if (holders === undefined) byName.set(name, list);
    else if (holders instanceof Set) holders.add(list);
    else if (holders !== list) byName.set(name, new Set([holders, list]));
  }

  #unhold(typeUrl: string, name: string, list: List): void {
    const byName = this.#holders.get(typeUrl);
    const holders = byName?.get(name);
    if (holders instanceof Set) {
      holders.delete(list);
      if (holders.size === 1) for (const last of holders) byName!.set(name, last);
    } else if (holders === list) {
      byName!.delete(name);
    }
  }

  /** Drops an empty list that nothing references. */
  #drop(list: List | undefined): void {
    if (list === undefined || list.parents > 0 || list.members.size > 0 || list.children.length > 0) return;
    if (!this.#roots.has(list) && this.#lists.get(list.key) === list) this.#lists.delete(list.key);
  }
}

function same(a: EncodedResource, b: EncodedResource): boolean {
  return a === b || (a.version === b.version && a.name === b.name && a.typeUrl === b.typeUrl);
}

/** Everybody looks at it in their turn; until then, it may concern them. */
function lookAt(changes: Changes): Concern | undefined {
  const found = new Set<readonly Rollout[]>();
  for (const names of changes.values())
    for (const list of names.values()) for (const { rollouts } of list) if (rollouts.length > 0) found.add(rollouts);
  return found.size === 0 ? undefined : Concern.look([...new Set([...found].flat())]);
}

const NOTHING_BROUGHT: BroughtNames = new Map();

function both(a: BroughtNames, b: BroughtNames): BroughtNames {
  if (a.size === 0 || b.size === 0) return a.size === 0 ? b : a;
  const found = new Map(a);
  for (const [name, rollouts] of b) found.set(name, joinRollouts(found.get(name) ?? NO_ROLLOUTS, rollouts));
  return found;
}

function changesOf(touched: Map<List, ChangeSet>, list: List): ChangeSet {
  let changes = touched.get(list);
  if (changes === undefined) touched.set(list, (changes = new ChangeSet()));
  return changes;
}
