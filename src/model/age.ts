/** Decides between two claims: the older one wins, then by name, then by namespace. */
export interface Aged {
  /** RFC 3339, or empty if unknown: older than all others. */
  readonly createdAt: string;
  readonly name: string;
  readonly namespace: string;
}

export function compareAge(a: Aged, b: Aged): number {
  return compareText(a.createdAt, b.createdAt) || compareText(a.name, b.name) || compareText(a.namespace, b.namespace);
}

/** The winner of two claims, for messages: `the older Gateway/shop/a`. Objects in files have no age. */
export function printWinner(name: string, winner: Aged, loser: Aged): string {
  if (winner.createdAt !== loser.createdAt) return `the older ${name}`;
  const decides = winner.name === loser.name ? 'namespace' : 'name';
  return `${name} (its ${decides} comes first, and their ages are equal or not known)`;
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
