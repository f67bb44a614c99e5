import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { CheckEncoding, Patching } from '../../envoy/encode/patching.ts';
import type { MessageOf } from '../../envoy/encode/proto.ts';
import { types } from '../../envoy/encode/proto-types.ts';
import type { FilterChain, Listener, VirtualHost } from '../../envoy/gen/types.gen.ts';
import { type Direction, type PatchedType, type Slot, touches } from '../../model/patch.ts';
import type { Source } from '../../model/provenance.ts';
import type { Patches, PlacedPatch } from '../clients/patch-sets.ts';

/** Whatever a message of these types has in it, patches of the other type change, too. */
const within: Readonly<Partial<Record<PatchedType, PatchedType>>> = { listener: 'filterChain', virtualHost: 'route' };

/** Undefined: nothing patches the message. */
export function patchingAt(
  read: Reader,
  patches: Patches | undefined,
  set: string | undefined,
  slot: Slot,
): SlotPatching | undefined {
  if (patches === undefined || set === undefined) return undefined;
  const { type } = slot;
  const inner = within[type];
  const own = patches.at(read, set, slot).filter(({ patch }) => touches(patch, slot));
  // Each of these stands elsewhere: at a port of its own, for example.
  const inside = inner === undefined ? [] : patches.at(read, set, { ...slot, type: inner });
  const placed = [...own, ...inside];
  return placed.length === 0 ? undefined : new SlotPatching(patches, placed, slot);
}

/** The patches for one message, applied by the front ends of their kinds. */
export class SlotPatching implements Patching {
  readonly #patches: Patches;
  readonly #placed: readonly PlacedPatch[];
  readonly #slot: Slot;
  readonly #problems: Problem[] = [];
  readonly #used: PlacedPatch[] = [];

  constructor(patches: Patches, placed: readonly PlacedPatch[], slot: Slot) {
    this.#patches = patches;
    this.#placed = placed;
    this.#slot = slot;
  }

  get sources(): readonly Source[] {
    return [...new Set(this.#used)].map(({ ref: object, patch: { field } }) => ({ object, field }));
  }

  /** Of patches that could not be applied. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  apply<Name extends string>(type: Name, message: MessageOf<Name>, check: CheckEncoding): MessageOf<Name> {
    const patched = this.#apply(type, message, this.#slot, check);
    switch (type as string) {
      case types.listener:
        return this.#withChains(patched as Listener, check) as MessageOf<Name>;
      case types.virtualHost:
        return this.#withRoutes(patched as VirtualHost, check) as MessageOf<Name>;
      default:
        return patched;
    }
  }

  #withChains(listener: Listener, check: CheckEncoding): Listener {
    const { filterChains, defaultFilterChain } = listener;
    const one = (chain: FilterChain): FilterChain => {
      const port = chain.filterChainMatch?.destinationPort?.value ?? this.#slot.port;
      const slot = { ...this.#slot, type: 'filterChain' as const, ...(port !== undefined && { port }) };
      return this.#apply(types.filterChain, chain, slot, check);
    };
    const chains = filterChains?.map(one);
    const last = defaultFilterChain && one(defaultFilterChain);
    if (last === defaultFilterChain && isSame(filterChains, chains)) return listener;
    return { ...listener, ...(chains && { filterChains: chains }), ...(last && { defaultFilterChain: last }) };
  }

  #withRoutes(virtualHost: VirtualHost, check: CheckEncoding): VirtualHost {
    const { routes } = virtualHost;
    const slot = { ...this.#slot, type: 'route' as const };
    const patched = routes?.map((route) => this.#apply(types.routeEntry, route, slot, check));
    return patched === undefined || isSame(routes, patched) ? virtualHost : { ...virtualHost, routes: patched };
  }

  /** One object after the other: what one gets wrong takes nothing from the others. */
  #apply<Name extends string>(type: Name, message: MessageOf<Name>, slot: Slot, check: CheckEncoding): MessageOf<Name> {
    let patched = message;
    const fitting = this.#placed.filter(({ patch }) => touches(patch, slot));
    for (const [source, own] of Map.groupBy(fitting, (placed) => placed.source)) {
      try {
        const next = this.#patches.sources.frontEndOf(source).apply(
          type,
          patched,
          slot,
          own.map(({ patch }) => patch),
        );
        if (next === patched) continue;
        if (hasFixedName(type) && nameOf(next) !== nameOf(patched)) throw new Error('its name cannot change');
        check(type, next);
        this.#used.push(...own);
        patched = next;
      } catch (error) {
        this.#note(own, error);
      }
    }
    return patched;
  }

  #note(placed: readonly PlacedPatch[], error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const { type, host, listener, table } = this.#slot;
    const where = [type, host ?? listener ?? table ?? ''].join(' ').trim();
    for (const { ref, patch } of new Set(placed)) {
      const message = `cannot be applied to the ${where}, which is served without it: ${reason}. Correct the patch.`;
      this.#problems.push({ object: ref, field: patch.field, reason: 'Invalid', message });
    }
  }
}

/** Others refer to these by their names. */
const hasFixedName = (type: string): boolean =>
  type === types.cluster || type === types.listener || type === types.route;

const nameOf = (message: object): unknown => ('name' in message ? message.name : undefined);

function isSame<T>(before: readonly T[] | undefined, after: readonly T[] | undefined): boolean {
  return (
    before === after || (before?.length === after?.length && before?.every((each, i) => each === after?.[i]) === true)
  );
}

/** What owners of patches are told, beside the message that these could not be applied to. */
export interface HasFailed {
  readonly failed?: readonly Problem[];
}

export const failedOf = ({ problems }: SlotPatching): HasFailed => (problems.length === 0 ? {} : { failed: problems });

export function failedPatches(graph: Graph, source: Collection<HasFailed>): Collection<HasProblems> {
  return graph.derive(
    `failed patches of ${source.name}`,
    graph.index(`${source.name} with failed patches`, source, (key, { failed }) => (failed === undefined ? [] : [key])),
    (key, [first], _, emit: Emit<HasProblems>) => emit(key, { problems: first.value.failed ?? [] }),
  );
}

/** Where a listener stands. */
export function listenerSlot(direction: Direction, { name, address }: Listener): Slot {
  const port = address?.socketAddress?.portValue;
  return {
    type: 'listener',
    direction,
    ...(name !== undefined && { listener: name }),
    ...(port !== undefined && { port }),
  };
}

/** Where a route table stands. */
export function tableSlot(direction: Direction, table: string): Slot {
  return { type: 'routeTable', direction, table, ...(/^\d+$/.test(table) && { port: Number(table) }) };
}
