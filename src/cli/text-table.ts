import { printable } from './printable.ts';

/** Columns as wide as they have to be, none of them empty. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows.map((row) => row.map((cell) => printable(cell) || '-'))];
  const widths = titles.map((_, i) => lines.reduce((most, line) => Math.max(most, line[i]!.length), 0));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, i) => cell.padEnd(widths[i]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** Of milliseconds, as kubectl prints it: in the largest unit of which there are two or more. */
export function duration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 2 * 3_600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 48 * 3_600 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
