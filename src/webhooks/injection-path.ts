/** What the URL of a webhook says about the Pods that it injects. */
export interface InjectionParameters {
  readonly cluster?: string;
  readonly network?: string;
  /** Variables of the proxy. */
  readonly env: Readonly<Record<string, string>>;
}

/** As Istio: a slash inside a value. */
const SLASH = '--slash--';

/** More than any configuration has; each becomes a variable of every proxy. */
const MOST_PAIRS = 20;

/** Reads the `k/v/k/v` of `/inject/k/v/k/v`, or says in one sentence what is wrong with it. */
export function readInjectionPath(
  path: string,
): { readonly parameters: InjectionParameters } | { readonly problem: string } {
  const parts = path.split('/').filter((part) => part !== '');
  if (parts.length % 2 !== 0)
    return { problem: 'the path must be /inject/KEY/VALUE/..., but the last key has no value' };
  if (parts.length > 2 * MOST_PAIRS) return { problem: `the path has more than ${MOST_PAIRS} keys` };
  const found: { cluster?: string; network?: string; env: Record<string, string> } = { env: {} };
  for (let i = 0; i < parts.length; i += 2) {
    const [key, value] = [decoded(parts[i]!), decoded(parts[i + 1]!)];
    if (key === undefined || value === undefined) return { problem: 'the path is not valid percent-encoded text' };
    if (key === 'cluster') found.cluster = value;
    else if (key === 'net') found.network = value;
    else {
      const name = key.toUpperCase();
      if (!/^[A-Z_][A-Z0-9_]*$/.test(name))
        return { problem: 'a key of the path is not a valid name for a variable: use letters, digits and _' };
      found.env[name] = value;
    }
  }
  return { parameters: found };
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll(SLASH, '/');
  } catch {
    return undefined;
  }
}
