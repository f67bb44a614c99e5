import { isDeeperThan } from './json-depth.ts';

/** More than Kubernetes has in any of its objects. */
const LEVELS = 50;

/** JSON in an annotation or variable, which anybody may have written. Undefined: it is not valid, or nested too deeply. */
export function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeperThan(value, LEVELS) ? undefined : value;
  } catch {
    return undefined;
  }
}
