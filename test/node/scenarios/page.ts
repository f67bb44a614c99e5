import type { Check } from '../load/requests.ts';

/** What the storefront answers: itself, and what it got of the services that it asks. */
export interface Page {
  readonly service: string;
  readonly parts: Readonly<
    Record<string, { readonly status: number; readonly service?: string; readonly reason?: string }>
  >;
}

export async function pageAt(origin: string): Promise<Page> {
  return (await (await fetch(`${origin}/`)).json()) as Page;
}

/** A page without gaps: requests between services count, too. */
export const isWhole: Check = (status, text) => {
  if (status !== 200) throw new Error(`${status} ${text.slice(0, 200)}`);
  const { parts } = JSON.parse(text) as Page;
  for (const name of ['reviews', 'stock', 'covers']) {
    const part = parts[name];
    if (part?.status !== 200) throw new Error(`${name}: ${part?.status} ${part?.reason}`);
  }
};
