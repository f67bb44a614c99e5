/** The oldest Node with everything that Fairlead's dependencies need; on older ones they fail with obscure messages. */
const OLDEST = [22, 19] as const;

/** Why this Node cannot run Fairlead; undefined if it can. */
export function refusalOf(version: string): string | undefined {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined;
  return `fairlead needs Node ${OLDEST.join('.')} or newer, and this is Node ${version.replace(/^v/, '')} (${process.execPath})`;
}
