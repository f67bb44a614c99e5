/** False if the comparison overflows the stack: objects of others may be nested thousands of levels deep. */
export function isSame(compare: () => boolean): boolean {
  try {
    return compare();
  } catch {
    return false;
  }
}
