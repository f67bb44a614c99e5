import { isObject } from '../api/json.ts';
import { type Entries, credentialEntries } from './read-credential.ts';

/** The entries of a Secret that are read. Source: a file, which may have `stringData`, or the API server. */
export function entriesOfSecret({
  data,
  stringData,
}: {
  readonly data?: unknown;
  readonly stringData?: unknown;
}): Entries {
  return { ...pick(data, 'base64'), ...pick(stringData, 'utf8') };
}

/** The same for a ConfigMap. */
export function entriesOfConfigMap({ data }: { readonly data?: unknown }): Entries {
  return pick(data, 'utf8');
}

function pick(data: unknown, encoding: 'base64' | 'utf8'): Record<string, Buffer> {
  const found: Record<string, Buffer> = {};
  if (isObject(data))
    for (const entry of credentialEntries) {
      const value = Object.hasOwn(data, entry) ? data[entry] : undefined;
      if (typeof value === 'string') found[entry] = Buffer.from(value, encoding);
    }
  return found;
}
