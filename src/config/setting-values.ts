import { readFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { readDocument } from '../yaml/document.ts';
import { flagName, type SettingName, settingNames, settings, type ValueOf, variableName, Wrong } from './settings.ts';

/** A setting is wrong: the message is one line that names where it was set. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code = 'CONFIG';
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where settings are looked up, in this order; a setting that none of them has is at its default. */
export interface Origins {
  readonly flags: Partial<Record<SettingName | 'config', string | readonly string[]>>;
  readonly env: Environment;
}

interface Found {
  /** Flag, variable, or file and key. */
  readonly origin: string;
  readonly texts: readonly string[];
}

/** The settings as they were given. What is wrong with one is thrown as a {@link ConfigError} when it is asked for. */
export class Values {
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
    // Only settings with a fallback are read this way.
    return value ?? (settings[name].parse(settings[name].fallback) as ValueOf<K>);
  }

  optional<K extends SettingName>(name: K): ValueOf<K> | undefined {
    return this.#parsed(name).at(-1);
  }

  all<K extends SettingName>(name: K): readonly ValueOf<K>[] {
    return this.#parsed(name);
  }

  origin(name: SettingName): string {
    return this.#find(name)?.origin ?? flagName(name);
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
    if (flag !== undefined) return { origin: flagName(name), texts: typeof flag === 'string' ? [flag] : flag };
    const variable = this.#env[variableName(name)];
    if (variable !== undefined && variable !== '') {
      const many = 'many' in settings[name];
      const texts = many ? variable.split(delimiter).filter((part) => part !== '') : [variable];
      return { origin: variableName(name), texts };
    }
    return this.#file.get(name);
  }
}

/** Kubernetes describes every Service of the namespace in variables, including one called fairlead. */
const serviceLink = /_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/;

/** For the Makefile and the tests: developers run Fairlead in the same shell. */
const developmentVariables = ['FAIRLEAD_CACHE', 'FAIRLEAD_SEED', 'FAIRLEAD_REQUIRE_PEERS'];

function refuseUnknownVariables(env: Environment): void {
  const known = new Set(['FAIRLEAD_CONFIG', ...developmentVariables, ...settingNames.map(variableName)]);
  for (const name of Object.keys(env))
    if (name.startsWith('FAIRLEAD_') && !known.has(name) && !serviceLink.test(name))
      throw new ConfigError(`${name}: unknown setting; see fairlead serve --help`);
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
      throw new ConfigError(`${origin}: unknown setting; see fairlead serve --help`);
    if (value === null) continue;
    const many = 'many' in settings[key as SettingName];
    const values: readonly unknown[] = Array.isArray(value) && many ? value : [value];
    if (values.some((item) => typeof item === 'object'))
      throw new ConfigError(`${origin}: must be ${many ? 'a list of strings' : 'one value'}`);
    found.set(key, { origin, texts: values.map(asText) });
  }
  return found;
}

/** YAML reads a plain `on` as a boolean. */
function asText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return String(value);
}
