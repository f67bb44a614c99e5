import { remembered } from './remembered.ts';

export type Labels = Readonly<Record<string, string>>;

/** Whether the labels contain all pairs of the selector. An empty selector matches everything. */
export function selects(selector: Labels, labels: Labels): boolean {
  for (const key of Object.keys(selector)) if (labels[key] !== selector[key]) return false;
  return true;
}

interface Labeled {
  readonly labels: Labels;
}

/** Those that a selector selects, in their order. There may be as many selectors as elements: most are not compared. */
export function selected<Element extends Labeled>(all: readonly Element[], selector: Labels): readonly Element[] {
  let few = all;
  for (const [name, value] of Object.entries(selector)) {
    const found = withLabel(all, name).get(value) ?? [];
    if (found.length < few.length) few = found;
  }
  return few === all ? few : few.filter(({ labels }) => selects(selector, labels));
}

/** By value. */
function withLabel<Element extends Labeled>(
  all: readonly Element[],
  name: string,
): ReadonlyMap<string | undefined, readonly Element[]> {
  const byName = namesOf(all) as Map<string, ReadonlyMap<string | undefined, readonly Element[]>>;
  let found = byName.get(name);
  if (found === undefined) byName.set(name, (found = Map.groupBy(all, ({ labels }) => labels[name])));
  return found;
}

/** Of each list, those label names that a selector has had. */
const namesOf = remembered((_: readonly Labeled[]) => new Map<string, unknown>());

/** Whether a workload can have the labels of both. */
export function mayOverlap(labels: Labels, selector: Labels): boolean {
  return Object.keys(labels).every((name) => !Object.hasOwn(selector, name) || selector[name] === labels[name]);
}

/** One text for equal selectors: `a=1,b=2`. Empty for the empty selector. */
export function printSelector(selector: Labels): string {
  return Object.keys(selector)
    .sort()
    .map((key) => `${key}=${selector[key]}`)
    .join(',');
}

/** Istio's injector sets it to `istio` where something terminates the mesh's mutual TLS. */
export const tlsModeLabel = 'security.istio.io/tlsMode';

export const saysMutualTls = (labels: Labels): boolean => labels[tlsModeLabel] === 'istio';
