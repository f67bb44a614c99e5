export type Labels = Readonly<Record<string, string>>;

/** Whether the labels contain all pairs of the selector. An empty selector matches everything. */
export function selects(selector: Labels, labels: Labels): boolean {
  for (const key of Object.keys(selector)) if (labels[key] !== selector[key]) return false;
  return true;
}

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
