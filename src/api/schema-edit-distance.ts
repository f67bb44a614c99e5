/** How many letters must be inserted, removed, replaced or swapped to turn one text into the other. For short texts. */
export function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i++) {
    const above = rows[i - 1]!;
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const candidates = [above[j - 1]! + (same ? 0 : 1), above[j]! + 1, row[j - 1]! + 1];
      row.push(Math.min(...candidates, swapped ? rows[i - 2]![j - 2]! + 1 : Infinity));
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
