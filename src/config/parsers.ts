import { networkInterfaces } from 'node:os';
import { clusterNameProblem } from '../clustermesh/names.ts';
import { LONGEST_LEASE } from '../kube/writing/lease.ts';
import { LONGEST_LIFETIME } from '../identity/lifetime.ts';
import { parseCidr } from '../model/cidr.ts';

export interface Address {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** See `CommitterOptions`. */
export interface Batch {
  readonly quiet: number;
  readonly max: number;
}

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';
export type LogFormat = 'text' | 'json';

/** Why a text is not a valid value for a setting. */
export class Wrong {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

export const text = (value: string): string => value;

export const oneOf =
  <T extends string>(...values: readonly T[]) =>
  (value: string): T | Wrong =>
    values.find((known) => known === value) ?? new Wrong(`must be ${values.join(' or ')}`);

export const matching =
  (pattern: RegExp, reason: string) =>
  (value: string): string | Wrong =>
    pattern.test(value) ? value : new Wrong(reason);

export const namespace = matching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be the name of a namespace');

export const objectName = matching(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'must be the name of an object');

export function address(value: string): Address | Wrong {
  return parseAddress(value) ?? new Wrong('must be host:port or :port');
}

export function parseAddress(value: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(value);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) return undefined;
  return { host: match[1] ?? (match[2] || everyAddress()), port };
}

/** Accepts connections of both families if the machine has both: a Pod may have only an IPv6 address. */
function everyAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.some(({ family }) => family === 'IPv6') ? '::' : '0.0.0.0';
}

export function batch(value: string): Batch | Wrong {
  const match = /^(\d{1,5})ms\/(\d{1,5})ms$/.exec(value);
  const [quiet, max] = [Number(match?.[1]), Number(match?.[2])];
  if (match === null || quiet > max) return new Wrong('must be <quiet>ms/<max>ms, where max is not less than quiet');
  return { quiet, max };
}

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Milliseconds. */
export function duration(value: string): number | Wrong {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(value);
  if (match === null) return new Wrong('must be a duration such as 30s or 10m');
  return Number(match[1]) * units[match[2] as keyof typeof units];
}

/** Leases count in seconds, and a shorter one is lost while the API server takes its time. */
export function leaseDuration(value: string): number | Wrong {
  const ms = duration(value);
  return ms instanceof Wrong || (ms >= 3_000 && ms <= LONGEST_LEASE) ? ms : new Wrong('must be from 3s to 1h');
}

/** Milliseconds. A shorter one would be renewed all the time. */
export function certificateLifetime(value: string): number | Wrong {
  const ms = duration(value);
  return ms instanceof Wrong || (ms >= 3_600_000 && ms <= LONGEST_LIFETIME)
    ? ms
    : new Wrong('must be from 1h to 2160h');
}

export function positive(value: string): number | Wrong {
  return /^[1-9]\d{0,8}$/.test(value) ? Number(value) : new Wrong('must be a whole number above 0');
}

/** DNS names, separated by commas. */
export function dnsNames(value: string): readonly string[] | Wrong {
  const found = value.split(',').filter((name) => name !== '');
  return found.every((name) => /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))
    ? found
    : new Wrong('must be lower-case DNS names, separated by commas');
}

/** Ranges of addresses, separated by commas. */
export function ranges(value: string): readonly string[] | Wrong {
  const found = value.split(',').filter((range) => range !== '');
  return found.every((range) => parseCidr(range) !== undefined)
    ? found
    : new Wrong('must be addresses or ranges such as 10.96.0.0/12, separated by commas');
}

/** Ids by other names: `name=cluster`, separated by commas. */
export function aliases(value: string): Readonly<Record<string, string>> | Wrong {
  const pairs = value.split(',').filter((pair) => pair !== '');
  const found = pairs.map((pair) => /^([^/\s=]{1,253})=([^/\s=]{1,253})$/.exec(pair)?.slice(1) ?? []);
  const [names, ids] = [new Set(found.map(([name]) => name)), new Set(found.map(([, id]) => id))];
  return found.every(({ length }) => length === 2) && names.size === pairs.length && ids.size === pairs.length
    ? Object.fromEntries(found as [string, string][])
    : new Wrong('must be name=cluster, separated by commas, with each name and each cluster at most once');
}

/** Of a cluster in Cilium's ClusterMesh. */
export function meshClusterName(value: string): string | Wrong {
  return clusterNameProblem(value) === undefined
    ? value
    : new Wrong('must be at most 32 lower-case letters, digits and dashes, and not "default"');
}
