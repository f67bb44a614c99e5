import { isIP } from 'node:net';
import { isObject, type Json } from '../api/json.ts';
import { quote } from '../api/quote.ts';
import type { EtcdAccess } from '../etcd/access.ts';
import { readDocument } from '../yaml/document.ts';

/** Why a file is not used. Never contains a credential. */
export interface ConfigRefusal {
  /** As in `cilium-host-aliases[0].ips`; empty: all of it. */
  readonly field: string;
  /** What is wrong, and what to do. */
  readonly message: string;
}

/** In bytes. */
export const LONGEST_CONFIG = 256 * 1024;
const MOST_ENDPOINTS = 64;
const MOST_ALIASES = 1_000;
const MOST_ADDRESSES = 64;

/**
 * Reads how to reach an etcd, as the configuration file of etcd's own client has it, with Cilium's addition for names
 * that no DNS knows. Fields that are not about that have no effect.
 */
export function readEtcdConfig(text: string): { readonly access: EtcdAccess } | { readonly refused: ConfigRefusal } {
  try {
    return { access: accessOf(text) };
  } catch (error) {
    if (error instanceof Refused) return { refused: { field: error.field, message: error.message } };
    throw error;
  }
}

/** Never leaves this file. */
class Refused extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

function accessOf(text: string): EtcdAccess {
  const document = readDocument(text);
  if ('broken' in document) throw new Refused('', `is not valid YAML: see line ${document.broken.line}`);
  const config = document.value;
  if (!isObject(config)) throw new Refused('', 'is not the configuration of an etcd client; give it endpoints');
  const endpoints = listOf(config['endpoints'], 'endpoints', MOST_ENDPOINTS).map(endpointOf);
  if (endpoints.length === 0) throw new Refused('endpoints', 'is empty; give the URL of an etcd');
  const isPlain = flagOf(config, 'insecure-transport');
  const secured = endpoints.findIndex((endpoint) => endpoint.startsWith('https:'));
  if (isPlain && secured >= 0)
    throw new Refused(
      `endpoints[${secured}]`,
      'begins with https://, but insecure-transport is true; change one of them',
    );
  const caFile = textOf(config, 'trusted-ca-file') ?? textOf(config, 'ca-file');
  const certFile = textOf(config, 'cert-file');
  const keyFile = textOf(config, 'key-file');
  if (certFile === undefined && keyFile !== undefined) throw new Refused('cert-file', 'is not set, but key-file is');
  if (certFile !== undefined && keyFile === undefined) throw new Refused('key-file', 'is not set, but cert-file is');
  const hostAliases = aliasesOf(config['cilium-host-aliases']);
  return {
    endpoints,
    ...(caFile !== undefined && { caFile }),
    ...(certFile !== undefined && keyFile !== undefined && { certificate: { certFile, keyFile } }),
    ...(flagOf(config, 'insecure-skip-tls-verify') && { skipsVerification: true }),
    ...(hostAliases !== undefined && { hostAliases }),
  };
}

function endpointOf(value: unknown, index: number): string {
  const field = `endpoints[${index}]`;
  if (typeof value !== 'string') throw new Refused(field, 'must be a string; put it in quotes');
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    // It is not repeated: it may have a password.
    throw new Refused(field, 'is not a URL that begins with https:// or http://');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '' || url.pathname !== '/')
    throw new Refused(field, 'has more than host and port; remove the rest');
  return value;
}

/** `[{hostname: east.mesh.cilium.io, ips: [10.0.0.1]}]` */
function aliasesOf(value: unknown): Readonly<Record<string, readonly string[]>> | undefined {
  const list = listOf(value, 'cilium-host-aliases', MOST_ALIASES);
  const aliases = new Map<string, readonly string[]>();
  for (const [i, alias] of list.entries()) {
    const path = `cilium-host-aliases[${i}]`;
    if (!isObject(alias)) throw new Refused(path, 'is not an object with hostname and ips');
    const hostname = textOf(alias, 'hostname', path);
    if (hostname === undefined) throw new Refused(`${path}.hostname`, 'is not set');
    if (aliases.has(hostname)) throw new Refused(`${path}.hostname`, `${quote(hostname)} is there twice; remove one`);
    const ips = listOf(alias['ips'], `${path}.ips`, MOST_ADDRESSES);
    if (ips.length === 0) throw new Refused(`${path}.ips`, 'is empty; give the addresses of the host');
    aliases.set(
      hostname,
      ips.map((ip, j) => {
        if (typeof ip === 'string' && isIP(ip) !== 0) return ip;
        throw new Refused(`${path}.ips[${j}]`, 'is not an IP address');
      }),
    );
  }
  return aliases.size === 0 ? undefined : Object.fromEntries(aliases);
}

function listOf(value: unknown, field: string, most: number): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Refused(field, 'is not a list');
  if (value.length > most) throw new Refused(field, `has ${value.length} entries; at most ${most} are read`);
  return value;
}

/** An empty text counts as absent. */
function textOf(entry: Json, field: string, path = ''): string | undefined {
  const value = entry[field];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw new Refused(path === '' ? field : `${path}.${field}`, 'must be a string; put it in quotes');
}

function flagOf(config: Json, field: string): boolean {
  const value = config[field];
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw new Refused(field, 'must be true or false');
}
