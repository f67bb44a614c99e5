import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const DIRECTORY = join(import.meta.dirname, 'truth');

/** Which Cilium wrote them, and how. See truth/README.md. */
export const recordings: readonly string[] = globSync('*.json', { cwd: DIRECTORY })
  .map((file) => basename(file, '.json'))
  .sort();

export interface RecordedKey {
  readonly key: string;
  readonly value: Buffer;
}

export function recordedKeys(recording: string): readonly RecordedKey[] {
  const text = readFileSync(join(DIRECTORY, `${recording}.json`), 'utf8');
  return (JSON.parse(text) as { readonly key: string; readonly valueBase64: string }[]).map(({ key, valueBase64 }) => ({
    key,
    value: Buffer.from(valueBase64, 'base64'),
  }));
}

/** A value of the services. */
export interface RecordedService {
  readonly namespace: string;
  readonly name: string;
  readonly shared: boolean;
  readonly frontends: RecordedAddresses;
  readonly backends: RecordedAddresses;
}

type RecordedAddresses = Readonly<Record<string, Readonly<Record<string, { readonly Port: number }>>>>;

export function recordedServices(keys: readonly RecordedKey[]): readonly RecordedService[] {
  return keys
    .filter(({ key }) => /^cilium\/(state|cache)\/services\//.test(key))
    .map(({ value }) => JSON.parse(value.toString()) as RecordedService);
}

/** `address:port` of the back ends of what is shared and has any, by `namespace/name`. */
export function recordedBackends(services: readonly RecordedService[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    services
      .filter(({ shared, backends }) => shared && Object.keys(backends).length > 0)
      .map(({ namespace, name, backends }) => [
        `${namespace}/${name}`,
        Object.entries(backends)
          .flatMap(([address, ports]) => Object.values(ports).map(({ Port }) => `${address}:${Port}`))
          .sort(),
      ]),
  );
}
