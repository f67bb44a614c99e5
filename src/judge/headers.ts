import type { Header } from './request.ts';

/** Headers that Envoy keeps as one value. Source: the inline headers of its header_map.h. */
const single = new Set([
  ...['accept', 'authorization', 'content-type', 'cookie', 'origin', 'referer', 'user-agent'],
  ...['access-control-request-method', 'x-forwarded-for', 'x-forwarded-host'],
]);

/** The headers as Envoy keeps them: names in lower case, and what comes several times joined where it does that. */
export function keptHeaders(headers: readonly Header[]): readonly Header[] {
  const kept: Header[] = [];
  for (const [sent, value] of headers) {
    const name = sent.toLowerCase();
    const i = single.has(name) ? kept.findIndex(([other]) => other === name) : -1;
    if (i < 0) kept.push([name, value]);
    else kept[i] = [name, `${kept[i]![1]}${name === 'cookie' ? '; ' : ','}${value}`];
  }
  return kept;
}

export function valuesOf(headers: readonly Header[], name: string): readonly string[] {
  return headers.flatMap(([each, value]) => (isSameName(each, name) ? [value] : []));
}

export const isSameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
