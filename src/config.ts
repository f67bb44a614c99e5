import { readFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { readDocument } from './directory/document.ts';

/** Everything that `fairlead serve` can be told. One frozen value, read once at the start. */
export interface Config {
  readonly source: SourceConfig;
  readonly grpcAddress: Address;
  readonly healthAddress: Address;
  readonly monitoringAddress: Address;
  readonly mesh: MeshSettings;
  /** Objects of other revisions are left to others; absent: all objects are ours. */
  readonly revision?: string;
  readonly batch: Batch;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
  readonly lease: { readonly name: string; readonly namespace: string };
  readonly statusWrites: boolean;
}

/** What decides how objects are understood, also without a server. */
export interface MeshSettings {
  readonly domainSuffix: string;
  readonly rootNamespace: string;
  readonly clusterId: string;
  readonly defaultProxyNamespace: string;
  readonly defaultProxyType: 'sidecar' | 'router';
}

export type SourceConfig =
  | { readonly kind: 'kubernetes'; readonly kubeconfig?: string; readonly context?: string }
  | { readonly kind: 'directory'; readonly paths: readonly string[] };

export interface Address {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/** A commit waits until no change came for `quiet` milliseconds, but for at most `max`. */
export interface Batch {
  readonly quiet: number;
  readonly max: number;
}

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';
export type LogFormat = 'text' | 'json';

/** A setting is wrong: the message is one line that names where it was set. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code = 'CONFIG';
}

/** Why a text is no value of a setting. */
class Wrong {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

interface Setting<T> {
  /** What stands for the value in the help. */
  readonly placeholder: string;
  readonly help: string;
  /** As text, like every value; empty for none. */
  readonly fallback: string;
  /** How the help prints the fallback, where it is not the text itself. */
  readonly fallbackHelp?: string;
  readonly many?: true;
  readonly parse: (text: string) => T | Wrong;
}

const text = (value: string): string => value;

const oneOf =
  <T extends string>(...values: readonly T[]) =>
  (value: string): T | Wrong =>
    values.find((known) => known === value) ?? new Wrong(`must be ${values.join(' or ')}`);

const matching =
  (pattern: RegExp, reason: string) =>
  (value: string): string | Wrong =>
    pattern.test(value) ? value : new Wrong(reason);

const namespace = matching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be the name of a namespace');

function address(value: string): Address | Wrong {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(value);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) return new Wrong('must be host:port or :port');
  return { host: match[1] ?? (match[2] || '0.0.0.0'), port };
}

function batch(value: string): Batch | Wrong {
  const match = /^(\d{1,5})ms\/(\d{1,5})ms$/.exec(value);
  const [quiet, max] = [Number(match?.[1]), Number(match?.[2])];
  if (match === null || quiet > max)
    return new Wrong('must be <quiet>ms/<at most>ms, the second not less than the first');
  return { quiet, max };
}

/** In the order of the help. The flag is the name with dashes, the variable the name in capitals behind FAIRLEAD_. */
const settings = {
  directory: {
    placeholder: 'path...',
    help: 'serve the objects in these directories or files, without a cluster',
    fallback: '',
    many: true,
    parse: text,
  },
  kubeconfig: {
    placeholder: 'file',
    help: 'how to reach the API server',
    fallback: '',
    fallbackHelp: '$KUBECONFIG, else the ServiceAccount of the Pod, else ~/.kube/config',
    parse: text,
  },
  context: {
    placeholder: 'name',
    help: 'context of the kubeconfig',
    fallback: '',
    fallbackHelp: 'its current context',
    parse: text,
  },
  grpcAddress: {
    placeholder: 'address',
    help: 'where proxies connect (ADS, plaintext)',
    fallback: ':15010',
    parse: address,
  },
  healthAddress: {
    placeholder: 'address',
    help: 'where /ready, /healthz and /debug are served',
    fallback: ':8080',
    parse: address,
  },
  monitoringAddress: {
    placeholder: 'address',
    help: 'where /metrics, /version and /debug are served',
    fallback: ':15014',
    parse: address,
  },
  domainSuffix: {
    placeholder: 'domain',
    help: 'DNS domain of the cluster',
    fallback: 'cluster.local',
    parse: matching(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'must be a DNS name in lower case'),
  },
  rootNamespace: {
    placeholder: 'namespace',
    help: 'where the mesh config and rules for the whole mesh are',
    fallback: 'istio-system',
    parse: namespace,
  },
  clusterId: {
    placeholder: 'name',
    help: 'name of this cluster, as proxies have it in CLUSTER_ID',
    fallback: 'Kubernetes',
    parse: matching(/^[^/\s]{1,253}$/, 'must be a name without blanks and slashes'),
  },
  revision: {
    placeholder: 'name',
    help: 'take only objects whose label istio.io/rev is this, or is not there',
    fallback: '',
    fallbackHelp: 'all objects',
    parse: matching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/, 'must be the value of a label'),
  },
  defaultProxyNamespace: {
    placeholder: 'namespace',
    help: 'namespace of a proxy whose node does not say',
    fallback: 'default',
    parse: namespace,
  },
  defaultProxyType: {
    placeholder: 'sidecar|router',
    help: 'type of a proxy whose node does not say',
    fallback: 'sidecar',
    parse: oneOf('sidecar', 'router'),
  },
  batch: {
    placeholder: 'ms/ms',
    help: 'wait for this quiet between changes / at most this long, then send',
    fallback: '10ms/100ms',
    parse: batch,
  },
  statusWrites: {
    placeholder: 'on|off',
    help: 'write conditions into the status of objects',
    fallback: 'on',
    parse: oneOf('on', 'off'),
  },
  leaseName: {
    placeholder: 'name',
    help: 'Lease whose holder writes the status',
    fallback: 'fairlead',
    parse: matching(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'must be the name of an object'),
  },
  leaseNamespace: {
    placeholder: 'namespace',
    help: 'namespace of the Lease',
    fallback: '',
    fallbackHelp: 'the root namespace',
    parse: namespace,
  },
  logLevel: {
    placeholder: 'error|warn|info|debug',
    help: 'what is logged, to standard error',
    fallback: 'info',
    parse: oneOf('error', 'warn', 'info', 'debug'),
  },
  logFormat: {
    placeholder: 'text|json',
    help: 'how it is logged',
    fallback: 'text',
    parse: oneOf('text', 'json'),
  },
} satisfies Record<string, Setting<unknown>>;

export type SettingName = keyof typeof settings;
type ValueOf<K extends SettingName> = Exclude<ReturnType<(typeof settings)[K]['parse']>, Wrong>;

export const settingNames = Object.keys(settings) as readonly SettingName[];

/** Those that also matter without a server. */
export const meshSettingNames: readonly SettingName[] = ['domainSuffix', 'rootNamespace', 'clusterId'];
export const proxySettingNames: readonly SettingName[] = ['defaultProxyNamespace', 'defaultProxyType'];

/** How a setting is called on the command line, and what the help says of it. */
export function flagOf(name: SettingName): { readonly flags: string; readonly description: string } {
  const { placeholder, help, fallback, fallbackHelp }: Setting<unknown> = settings[name];
  const shown = fallbackHelp ?? fallback;
  const notes = [...(shown === '' ? [] : [`default: ${shown}`]), `env: ${variableOf(name)}`];
  return { flags: `${dashed(name)} <${placeholder}>`, description: `${help} (${notes.join('; ')})` };
}

function dashed(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function variableOf(name: string): string {
  return `FAIRLEAD_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where settings are looked for, the first one first; what none of them has is at its default. */
export interface Origins {
  readonly flags: Partial<Record<SettingName | 'config', string | readonly string[]>>;
  readonly env: Environment;
}

/** Everything for `fairlead serve`. Throws a {@link ConfigError}. */
export function readConfig(origins: Origins): Config {
  const values = new Values(origins);
  const paths = values.all('directory');
  const kubeconfig = values.optional('kubeconfig');
  const context = values.optional('context');
  if (paths.length > 0 && (kubeconfig ?? context) !== undefined) {
    const other = kubeconfig === undefined ? 'context' : 'kubeconfig';
    throw new ConfigError(`${values.origin('directory')} and ${values.origin(other)} exclude each other`);
  }
  const revision = values.optional('revision');
  const mesh = meshOf(values);
  return deepFreeze({
    source:
      paths.length > 0
        ? { kind: 'directory', paths }
        : {
            kind: 'kubernetes',
            ...(kubeconfig === undefined ? {} : { kubeconfig }),
            ...(context === undefined ? {} : { context }),
          },
    grpcAddress: values.one('grpcAddress'),
    healthAddress: values.one('healthAddress'),
    monitoringAddress: values.one('monitoringAddress'),
    mesh,
    ...(revision === undefined ? {} : { revision }),
    batch: values.one('batch'),
    log: { level: values.one('logLevel'), format: values.one('logFormat') },
    lease: { name: values.one('leaseName'), namespace: values.optional('leaseNamespace') ?? mesh.rootNamespace },
    statusWrites: values.one('statusWrites') === 'on',
  });
}

/** What commands without a server need. Throws a {@link ConfigError}. */
export function readMeshSettings(origins: Origins): MeshSettings {
  return deepFreeze(meshOf(new Values(origins)));
}

function meshOf(values: Values): MeshSettings {
  return {
    domainSuffix: values.one('domainSuffix'),
    rootNamespace: values.one('rootNamespace'),
    clusterId: values.one('clusterId'),
    defaultProxyNamespace: values.one('defaultProxyNamespace'),
    defaultProxyType: values.one('defaultProxyType'),
  };
}

interface Found {
  /** Flag, variable, or file and key. */
  readonly origin: string;
  readonly texts: readonly string[];
}

class Values {
  readonly #flags: Origins['flags'];
  readonly #env: Environment;
  readonly #file: ReadonlyMap<string, Found>;

  constructor({ flags, env }: Origins) {
    this.#flags = flags;
    this.#env = env;
    refuseUnknownVariables(env);
    const file = flags.config === undefined ? env['FAIRLEAD_CONFIG'] : String(flags.config);
    this.#file = file === undefined || file === '' ? new Map() : readConfigFile(file);
  }

  one<K extends SettingName>(name: K): ValueOf<K> {
    const value = this.optional(name);
    // Only settings with a fallback are asked for in this way.
    return value ?? (settings[name].parse(settings[name].fallback) as ValueOf<K>);
  }

  optional<K extends SettingName>(name: K): ValueOf<K> | undefined {
    return this.#parsed(name).at(-1);
  }

  all<K extends SettingName>(name: K): readonly ValueOf<K>[] {
    return this.#parsed(name);
  }

  origin(name: SettingName): string {
    return this.#find(name)?.origin ?? dashed(name);
  }

  #parsed<K extends SettingName>(name: K): ValueOf<K>[] {
    const found = this.#find(name);
    if (found === undefined) return [];
    return found.texts.map((value) => {
      const parsed = settings[name].parse(value);
      if (parsed instanceof Wrong) throw new ConfigError(`${found.origin}: ${JSON.stringify(value)} ${parsed.reason}`);
      return parsed as ValueOf<K>;
    });
  }

  #find(name: SettingName): Found | undefined {
    const flag = this.#flags[name];
    if (flag !== undefined) return { origin: dashed(name), texts: typeof flag === 'string' ? [flag] : flag };
    const variable = this.#env[variableOf(name)];
    if (variable !== undefined && variable !== '') {
      const many = 'many' in settings[name];
      const texts = many ? variable.split(delimiter).filter((part) => part !== '') : [variable];
      return { origin: variableOf(name), texts };
    }
    return this.#file.get(name);
  }
}

/** Kubernetes describes every Service of the namespace in variables, also one called fairlead. */
const serviceLink = /_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/;

function refuseUnknownVariables(env: Environment): void {
  const known = new Set(['FAIRLEAD_CONFIG', ...settingNames.map(variableOf)]);
  for (const name of Object.keys(env))
    if (name.startsWith('FAIRLEAD_') && !known.has(name) && !serviceLink.test(name))
      throw new ConfigError(`${name}: there is no such setting; see fairlead serve --help`);
}

function readConfigFile(file: string): ReadonlyMap<string, Found> {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ConfigError(`${file}: cannot be read: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
  const document = readDocument(content);
  if ('broken' in document) throw new ConfigError(`${file}:${document.broken.line}: ${document.broken.message}`);
  const found = new Map<string, Found>();
  const { value: map } = document;
  if (map === null) return found;
  if (typeof map !== 'object' || Array.isArray(map)) throw new ConfigError(`${file}: must be a map of settings`);
  for (const [key, value] of Object.entries(map)) {
    const origin = `${file}: ${key}`;
    if (!(settingNames as readonly string[]).includes(key))
      throw new ConfigError(`${origin}: there is no such setting; see fairlead serve --help`);
    if (value === null) continue;
    const many = 'many' in settings[key as SettingName];
    const values: readonly unknown[] = Array.isArray(value) && many ? value : [value];
    if (values.some((item) => typeof item === 'object'))
      throw new ConfigError(`${origin}: must be ${many ? 'a list of texts' : 'one value'}`);
    found.set(key, { origin, texts: values.map(asText) });
  }
  return found;
}

/** YAML takes a plain `on` for a boolean. */
function asText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return String(value);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
