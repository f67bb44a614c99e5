import { isObject, type Json } from '../api/json.ts';
import { quote } from '../api/quote.ts';
import { readDocument } from '../yaml/document.ts';
import type { Refusal } from './refusal.ts';

/**
 * How another cluster's API server is reached: the only parts of a kubeconfig that are used. Certificates and keys are
 * PEM, in Base64.
 */
export interface ClusterAccess {
  /** Without a slash at the end. */
  readonly server: string;
  readonly tlsServerName?: string;
  readonly certificateAuthority?: string;
  /** The server's certificate is not verified, or the server has none. */
  readonly insecure: boolean;
  readonly token?: string;
  readonly login?: { readonly username: string; readonly password: string };
  readonly clientCertificate?: { readonly certificate: string; readonly key: string };
}

export type Kubeconfig = ({ readonly access: ClusterAccess } | { readonly refused: Refusal }) & {
  /** What the cluster in the current context is called, as far as this is known. */
  readonly name?: string;
};

export interface KubeconfigRules {
  /** Servers without TLS, or whose certificate is not verified. */
  readonly allowInsecure: boolean;
}

/** In bytes. One with few fields has a few thousand, most of them certificates. Reading the longest takes 0.1 s. */
export const LONGEST_KUBECONFIG = 256 * 1024;

/**
 * Reads a kubeconfig that someone else has written. It can make this process neither run a program nor read a file; the
 * result is built from a fixed list of fields, so a field that is new to kubeconfigs has no effect. Whom the server's
 * URL leads to cannot be judged here.
 */
export function readKubeconfig(text: string, rules: KubeconfigRules): Kubeconfig {
  let name: string | undefined;
  try {
    const { context, config } = contextIn(text);
    name = textOf(context.entry, 'cluster', context.path);
    const named = name === undefined ? {} : { name };
    return { access: accessOf(config, context, rules), ...named };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { refused: { field: error.field, message: error.message }, ...(name !== undefined && { name }) };
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

function contextIn(text: string): { readonly config: Json; readonly context: Place } {
  if (Buffer.byteLength(text) > LONGEST_KUBECONFIG)
    throw new Refused('', `is longer than ${LONGEST_KUBECONFIG} bytes; leave only one cluster, user and context in it`);
  const document = readDocument(text);
  // The parser's message may quote what it stumbled over, which may be a token.
  if ('broken' in document) throw new Refused('', `is not valid YAML: see line ${document.broken.line}`);
  const config = document.value;
  if (!isObject(config)) throw new Refused('', 'is not a kubeconfig; create it with "istioctl create-remote-secret"');
  const current = textOf(config, 'current-context', '');
  if (current === undefined) throw new Refused('current-context', 'is not set; name the context to use');
  return { config, context: entryNamed(config, 'contexts', 'context', current, 'current-context') };
}

function accessOf(config: Json, context: Place, rules: KubeconfigRules): ClusterAccess {
  const clusterName = textOf(context.entry, 'cluster', context.path);
  if (clusterName === undefined) throw new Refused(`${context.path}.cluster`, 'is not set; name the cluster to use');
  const userName = textOf(context.entry, 'user', context.path);
  if (userName === undefined) throw new Refused(`${context.path}.user`, 'is not set; name the user to use');
  const cluster = entryNamed(config, 'clusters', 'cluster', clusterName, `${context.path}.cluster`);
  const user = entryNamed(config, 'users', 'user', userName, `${context.path}.user`);
  return { ...serverOf(cluster, rules), ...credentialsOf(user) };
}

interface Place {
  readonly entry: Json;
  readonly path: string;
}

/** Of several with one name, the first. */
function entryNamed(config: Json, list: string, inner: string, name: string, namedBy: string): Place {
  const entries: unknown = config[list];
  if (!Array.isArray(entries)) throw new Refused(list, `is not a list; it must contain ${quote(name)}`);
  const index = entries.findIndex((each) => isObject(each) && each['name'] === name);
  if (index < 0) throw new Refused(namedBy, `names ${quote(name)}, which is not in ${list}`);
  const path = `${list}[${index}].${inner}`;
  const entry: unknown = (entries[index] as Json)[inner];
  if (!isObject(entry)) throw new Refused(path, 'is not set');
  return { entry, path };
}

type Server = Pick<ClusterAccess, 'server' | 'tlsServerName' | 'certificateAuthority' | 'insecure'>;

function serverOf({ entry, path }: Place, { allowInsecure }: KubeconfigRules): Server {
  const server = textOf(entry, 'server', path);
  if (server === undefined) throw new Refused(`${path}.server`, 'is not set; give the URL of the API server');
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new Refused(`${path}.server`, 'is not a URL that begins with https://');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new Refused(`${path}.server`, 'has more than host, port and path; remove the rest');
  absent(entry, path, 'certificate-authority', 'names a file; use certificate-authority-data');
  absent(entry, path, 'proxy-url', 'is not supported; make the API server reachable without a proxy');
  const skipped = entry['insecure-skip-tls-verify'];
  if (skipped !== undefined && skipped !== null && typeof skipped !== 'boolean')
    throw new Refused(`${path}.insecure-skip-tls-verify`, 'must be true or false');
  if (skipped === true && !allowInsecure)
    throw new Refused(`${path}.insecure-skip-tls-verify`, 'is not allowed; give certificate-authority-data instead');
  if (url.protocol === 'http:' && !allowInsecure) throw new Refused(`${path}.server`, 'is not encrypted; use https://');
  const certificateAuthority = pemOf(entry, 'certificate-authority-data', path, 'CERTIFICATE');
  if (skipped === true && certificateAuthority !== undefined)
    throw new Refused(
      `${path}.insecure-skip-tls-verify`,
      'cannot be combined with certificate-authority-data; remove one of them',
    );
  const tlsServerName = textOf(entry, 'tls-server-name', path);
  return {
    server: `${url.origin}${url.pathname}`.replace(/\/+$/, ''),
    insecure: skipped === true || url.protocol === 'http:',
    ...(tlsServerName !== undefined && { tlsServerName }),
    ...(certificateAuthority !== undefined && { certificateAuthority }),
  };
}

/** What a user may not have, and what to do instead. */
const forbidden: Readonly<Record<string, string>> = {
  exec: 'would run a program; use a token or a client certificate',
  'auth-provider': 'is not supported; use a token or a client certificate',
  tokenFile: 'names a file; use token',
  'client-certificate': 'names a file; use client-certificate-data',
  'client-key': 'names a file; use client-key-data',
  as: 'is not supported; use the credentials of that user',
  'as-uid': 'is not supported; use the credentials of that user',
  'as-groups': 'is not supported; use the credentials of a user in these groups',
  'as-user-extra': 'is not supported; use the credentials of that user',
};

type UserCredentials = Pick<ClusterAccess, 'token' | 'login' | 'clientCertificate'>;

function credentialsOf({ entry, path }: Place): UserCredentials {
  for (const [field, reason] of Object.entries(forbidden)) absent(entry, path, field, reason);
  const token = textOf(entry, 'token', path);
  // A header cannot carry anything else, and a request with it would fail without naming the field.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token.trim()))
    throw new Refused(`${path}.token`, 'contains a character that a token cannot have');
  const username = textOf(entry, 'username', path);
  const password = textOf(entry, 'password', path);
  if (username === undefined && password !== undefined)
    throw new Refused(`${path}.username`, 'is not set, but password is');
  if (token !== undefined && username !== undefined)
    throw new Refused(`${path}.token`, 'cannot be combined with username; remove one of them');
  const certificate = pemOf(entry, 'client-certificate-data', path, 'CERTIFICATE');
  const key = pemOf(entry, 'client-key-data', path, '(?:[A-Z]+ )?PRIVATE KEY');
  if (certificate === undefined && key !== undefined)
    throw new Refused(`${path}.client-certificate-data`, 'is not set, but client-key-data is');
  if (certificate !== undefined && key === undefined)
    throw new Refused(`${path}.client-key-data`, 'is not set, but client-certificate-data is');
  return {
    ...(token !== undefined && { token: token.trim() }),
    ...(username !== undefined && { login: { username, password: password ?? '' } }),
    ...(certificate !== undefined && key !== undefined && { clientCertificate: { certificate, key } }),
  };
}

function absent(entry: Json, path: string, field: string, reason: string): void {
  const value = entry[field];
  if (value === undefined || value === null || value === '') return;
  throw new Refused(`${path}.${field}`, reason);
}

/** As kubectl does, an empty text counts as absent. */
function textOf(entry: Json, field: string, path: string): string | undefined {
  const value = entry[field];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw new Refused(path === '' ? field : `${path}.${field}`, 'must be a string; put it in quotes');
}

/** The Base64 of it, checked as far as one can see from outside. */
function pemOf(entry: Json, field: string, path: string, label: string): string | undefined {
  const value = textOf(entry, field, path)?.replace(/\s/g, '');
  if (value === undefined) return undefined;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) throw new Refused(`${path}.${field}`, 'is not Base64');
  const begin = new RegExp(`-----BEGIN ${label}-----`);
  if (!begin.test(Buffer.from(value, 'base64').toString('latin1')))
    throw new Refused(
      `${path}.${field}`,
      `does not contain a ${label === 'CERTIFICATE' ? 'certificate' : 'key'} as PEM`,
    );
  return value;
}
