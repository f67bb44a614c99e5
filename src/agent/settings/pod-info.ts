/** Labels and annotations of a Pod, as the kubelet writes them into files: `key="value"` on each line. */
export function readPodInfo(text: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const at = line.indexOf('=');
    if (at <= 0) continue;
    const value = unquote(line.slice(at + 1));
    if (value !== undefined) found[line.slice(0, at)] = value;
  }
  return found;
}

/** Go's `%q`, of which JSON is nearly all. Undefined for anything else: the line is not one that the kubelet wrote. */
function unquote(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(
      text.replace(/\\(?:x([0-9a-f]{2})|U([0-9a-f]{8})|([av]))|\\./g, (escape, byte, rune, rare) => {
        if (byte !== undefined) return `\\u00${byte as string}`;
        if (rune !== undefined) return JSON.stringify(String.fromCodePoint(parseInt(rune as string, 16))).slice(1, -1);
        return rare === 'a' ? '\\u0007' : rare === 'v' ? '\\u000b' : escape;
      }),
    );
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
