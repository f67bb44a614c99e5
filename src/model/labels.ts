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

/** The elements that a selector selects, in their order. There may be as many selectors as elements: most are not compared. */
export function selected<Element extends Labeled>(all: readonly Element[], selector: Labels): readonly Element[] {
  let few = all;
  for (const [name, value] of Object.entries(selector)) {
    // The same elements, whose type is forgotten meanwhile.
    const found = (byLabel(all).get(name)?.get(value) ?? []) as readonly Labeled[] as readonly Element[];
    if (found.length === 0) return [];
    if (found.length < few.length) few = found;
  }
  return few === all ? few : few.filter(({ labels }) => selects(selector, labels));
}

/** By name and value. Costs as much as the elements have labels, whatever selectors ask for. */
const byLabel = remembered((all: readonly Labeled[]): ReadonlyMap<string, ReadonlyMap<string, readonly Labeled[]>> => {
  const found = new Map<string, Map<string, Labeled[]>>();
  for (const element of all)
    for (const [name, value] of Object.entries(element.labels)) {
      let byValue = found.get(name);
      if (byValue === undefined) found.set(name, (byValue = new Map<string, Labeled[]>()));
      const elements = byValue.get(value);
      if (elements === undefined) byValue.set(value, [element]);
      else elements.push(element);
    }
  return found;
});

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
