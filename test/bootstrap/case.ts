import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Bootstrap, bootstrapOf } from '../../src/agent/bootstrap/bootstrap.ts';
import type { LogFormat } from '../../src/config/settings.ts';
import { type AgentSettings, type ProxyType, readSettings } from '../../src/agent/settings/settings.ts';

const directory = join(import.meta.dirname, 'cases');

/** One file of `cases`: what is not as in every Pod. */
interface Case {
  readonly type?: ProxyType;
  readonly env?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Mesh config. */
  readonly mesh?: string;
  readonly addresses?: readonly string[];
}

export const caseNames = (): readonly string[] =>
  globSync('*.yaml', { cwd: directory })
    .map((file) => file.replace(/\.yaml$/, ''))
    .sort();

/** Expected files without a case. */
export const orphans = (): readonly string[] =>
  globSync('*.json', { cwd: directory }).filter((file) => !caseNames().includes(file.replace(/\.json$/, '')));

export const expectedFile = (name: string): string => join(directory, `${name}.json`);

/** What the file says, and what it is made of. */
export function readCase(
  name: string,
  format: LogFormat = 'json',
): { readonly settings: AgentSettings; readonly bootstrap: Bootstrap } {
  const made = parse(readFileSync(join(directory, `${name}.yaml`), 'utf8')) as Case | null;
  const { type = 'sidecar', env = {}, labels = {}, annotations = {}, mesh = '', addresses = ['10.0.0.1'] } = made ?? {};
  const [address = ''] = addresses;
  const files: Readonly<Record<string, string>> = {
    '/etc/istio/config/mesh': mesh,
    '/etc/istio/pod/labels': lines({ app: 'reviews', 'pod-template-hash': '7d9', version: 'v1', ...labels }),
    '/etc/istio/pod/annotations': lines(annotations),
  };
  const settings = readSettings(
    { type, domain: 'shop.svc.cluster.local', root: '/', meshConfigFile: 'etc/istio/config/mesh' },
    {
      env: {
        POD_NAME: 'reviews-v1-7d9-x2v',
        POD_NAMESPACE: 'shop',
        SERVICE_ACCOUNT: 'reviews',
        INSTANCE_IP: address,
        HOST_IP: '192.0.2.7',
        ...env,
      },
      readFile: (path) => files[path],
      isSocket: () => false,
      addresses: () => addresses.map((each) => ({ interface: 'eth0', address: each })),
    },
  );
  return { settings, bootstrap: bootstrapOf(settings, format) };
}

export const printBootstrap = (bootstrap: Bootstrap): string => `${JSON.stringify(bootstrap, undefined, 2)}\n`;

/** As the downward API writes them. */
const lines = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}\n`)
    .join('');
