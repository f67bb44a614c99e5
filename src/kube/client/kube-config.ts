import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { KubeConfig, loadYaml, type Context, type User } from '@kubernetes/client-node';
import type { ExecConfig } from './exec-plugin.ts';
import { isObject, type Json } from '../../api/json.ts';
import { isProxy, ProxyError, proxyFor } from './proxy.ts';

/** The configuration for the API server is unusable. The message is one line that says which file or name is wrong. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
  readonly code = 'KUBECONFIG';
}

/** A kubeconfig user, with the fields that client-node does not know. */
export interface KubeUser extends User {
  readonly exec?: ExecConfig & { readonly provideClusterInfo?: boolean };
  /** `as-uid` */
  readonly impersonateUid?: string;
  /** `as-groups` */
  readonly impersonateGroups?: readonly string[];
  /** `as-user-extra` */
  readonly impersonateExtra?: Readonly<Record<string, readonly string[]>>;
}

export interface KubeConfigOptions {
  /** The flag: a kubeconfig file, which takes precedence over everything else. */
  readonly path?: string | undefined;
  /** A context of the kubeconfig to use instead of the current one. */
  readonly context?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Directory in which a Pod finds its ServiceAccount. */
  readonly serviceAccount?: string;
}

/**
 * Reads the configuration from, in this order: the flag, `$KUBECONFIG`, the Pod's ServiceAccount, `~/.kube/config`.
 * The same order as controller-runtime. Throws a {@link KubeConfigError}; never falls back to a default server.
 */
export function readKubeConfig(options: KubeConfigOptions = {}): KubeConfig {
  const { config, origin } = find(options);
  if (options.context !== undefined && options.context !== '') config.setCurrentContext(options.context);
  return usable(config, origin, options.env ?? process.env);
}

function find(options: KubeConfigOptions): { readonly config: KubeConfig; readonly origin: string } {
  const { path, env = process.env, serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount' } = options;
  if (path !== undefined && path !== '') return { config: readFile(path), origin: `kubeconfig ${path}` };

  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  if (named.length === 1) return { config: readFile(named[0]!), origin: `kubeconfig ${named[0]}` };
  if (named.length > 1) {
    const there = named.filter((file) => existsSync(file));
    if (there.length === 0) throw new KubeConfigError(`kubeconfig: no file of KUBECONFIG exists: ${named.join(', ')}`);
    return { config: merge(there.map(readFile)), origin: `kubeconfig ${there.join(', ')}` };
  }

  const host = env['KUBERNETES_SERVICE_HOST'];
  if (host !== undefined && host !== '' && existsSync(join(serviceAccount, 'token')))
    return {
      config: inCluster(host, env['KUBERNETES_SERVICE_PORT'] ?? '443', serviceAccount),
      origin: 'the ServiceAccount',
    };

  const home = join(env['HOME'] ?? homedir(), '.kube', 'config');
  if (existsSync(home)) return { config: readFile(home), origin: `kubeconfig ${home}` };
  throw new KubeConfigError(
    'no Kubernetes configuration: not in a Pod, KUBECONFIG is not set and there is no ~/.kube/config',
  );
}

function readFile(file: string): KubeConfig {
  try {
    const text = readFileSync(file, 'utf8');
    const content = loadYaml<unknown>(text);
    if (!isObject(content)) throw new Error('not a kubeconfig');
    const config = new KubeConfig();
    config.loadFromString(text);
    config.makePathsAbsolute(resolve(file, '..'));
    return withAllOfUsers(config, content['users'], resolve(file, '..'));
  } catch (cause) {
    const first = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new KubeConfigError(`kubeconfig ${file}: ${first}`, { cause });
  }
}

/** Adds the user fields that client-node does not read. For `tokenFile` it has an authenticator, under another name. */
function withAllOfUsers(config: KubeConfig, entries: unknown, directory: string): KubeConfig {
  const found = new Map<unknown, Json>();
  for (const entry of Array.isArray(entries) ? entries : [])
    if (isObject(entry) && isObject(entry['user'])) found.set(entry['name'], entry['user']);
  config.users = config.users.map((user): KubeUser => {
    const raw = found.get(user.name) ?? {};
    const { tokenFile, exec, 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = raw;
    const texts = (list: unknown): string[] => (Array.isArray(list) ? list.map(String) : []);
    return {
      ...user,
      ...(typeof tokenFile === 'string'
        ? { authProvider: { name: 'tokenFile', config: { tokenFile: resolve(directory, tokenFile) } } }
        : {}),
      ...(isObject(exec) ? { exec: fromDirectory(exec as unknown as ExecConfig, directory) } : {}),
      ...(typeof uid === 'string' && uid !== '' ? { impersonateUid: uid } : {}),
      ...(texts(groups).length > 0 ? { impersonateGroups: texts(groups) } : {}),
      ...(isObject(extra)
        ? { impersonateExtra: Object.fromEntries(Object.entries(extra).map(([key, list]) => [key, texts(list)])) }
        : {}),
    };
  });
  return config;
}

/** A command with a slash is relative to the kubeconfig's directory; any other is looked up in $PATH. */
function fromDirectory(exec: ExecConfig, directory: string): ExecConfig {
  return String(exec.command).includes('/') ? { ...exec, command: resolve(directory, exec.command) } : exec;
}

/** If several files have an entry with the same name, the first one wins, as with kubectl. */
function merge(configs: readonly KubeConfig[]): KubeConfig {
  const merged = new KubeConfig();
  const first = <T extends { readonly name: string }>(entries: readonly T[]): T[] => [
    ...new Map([...entries].reverse().map((entry) => [entry.name, entry])).values(),
  ];
  merged.loadFromOptions({
    clusters: first(configs.flatMap((c) => c.clusters)),
    users: first(configs.flatMap((c) => c.users)),
    contexts: first(configs.flatMap((c) => c.contexts)),
    currentContext: configs.map((c) => c.currentContext).find((name) => name !== undefined && name !== ''),
  });
  return merged;
}

function inCluster(host: string, port: string, serviceAccount: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [
      {
        name: 'in-cluster',
        server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
        caFile: join(serviceAccount, 'ca.crt'),
        skipTLSVerify: false,
      },
    ],
    users: [
      {
        name: 'service-account',
        authProvider: { name: 'tokenFile', config: { tokenFile: join(serviceAccount, 'token') } },
      },
    ],
    contexts: [{ name: 'in-cluster', cluster: 'in-cluster', user: 'service-account' }],
    currentContext: 'in-cluster',
  });
  return config;
}

/** Finds mistakes before the first request, while the message can still name them. */
function usable(config: KubeConfig, origin: string, env: Readonly<Record<string, string | undefined>>): KubeConfig {
  const wrong = (what: string): KubeConfigError => new KubeConfigError(`${origin}: ${what}`);
  const current = config.currentContext as string | undefined;
  if (current === undefined || current === '') throw wrong('current-context is not set');
  const context = config.getContextObject(current);
  if (context === null) throw wrong(`context ${current} does not exist`);
  const cluster = config.getCluster(context.cluster);
  if (cluster === null) throw wrong(`cluster ${context.cluster} does not exist`);
  if (!URL.canParse(cluster.server) || !/^https?:$/.test(new URL(cluster.server).protocol))
    throw wrong(`server of cluster ${cluster.name} is not a URL: ${cluster.server}`);
  if (cluster.proxyUrl !== undefined && cluster.proxyUrl !== '' && !isProxy(cluster.proxyUrl))
    throw wrong(`proxy-url of cluster ${cluster.name} is not the URL of an HTTP or SOCKS proxy`);
  const user = config.getCurrentUser() as KubeUser | null;
  if (user !== null) checkUser(user, wrong);
  const files = [
    cluster.caFile,
    user?.certFile,
    user?.keyFile,
    (user?.authProvider?.config as { tokenFile?: string } | undefined)?.tokenFile,
  ];
  for (const file of files) if (file && !readable(file)) throw wrong(`${file} cannot be read`);

  const proxy = cluster.proxyUrl || proxyOf(cluster.server, env);
  config.loadFromOptions({
    // client-node accepts plain HTTP (kubectl proxy) only if TLS verification is off.
    clusters: config.clusters.map((c) => ({
      ...c,
      ...(c.server.startsWith('http:') ? { skipTLSVerify: true } : {}),
      ...(c.name === cluster.name && proxy !== undefined ? { proxyUrl: proxy } : {}),
    })),
    // client-node ignores the cluster's CA if the context has no user.
    users: user === null ? [...config.users, { name: anonymous }] : config.users,
    contexts:
      user === null
        ? config.contexts.map((c): Context => (c.name === current ? { ...c, user: anonymous } : c))
        : config.contexts,
    currentContext: current,
  });
  return config;
}

/** Finds mistakes that would otherwise show up with every request, or not at all. */
function checkUser(user: KubeUser, wrong: (what: string) => KubeConfigError): void {
  const { name, exec, authProvider, impersonateUser, impersonateUid, impersonateGroups, impersonateExtra } = user;
  const impersonated = (impersonateUid ?? impersonateGroups ?? impersonateExtra) !== undefined;
  if (impersonated && (impersonateUser ?? '') === '')
    throw wrong(`user ${name} has as-uid, as-groups or as-user-extra without as`);
  const provider = (authProvider as { readonly name?: unknown } | null | undefined)?.name;
  // client-node would run their programs without a time limit, and block the whole process for some of them.
  if (provider === 'gcp' || provider === 'azure' || provider === 'exec')
    throw wrong(`user ${name} has auth-provider ${provider}, which kubectl no longer supports; use exec`);
  if (exec === undefined || exec === null) return;
  if (typeof exec.command !== 'string' || exec.command === '') throw wrong(`user ${name} has exec without a command`);
  if ((exec as { readonly interactiveMode?: unknown }).interactiveMode === 'Always')
    throw wrong(`user ${name} has exec with interactiveMode Always, which needs a terminal`);
}

function proxyOf(server: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  try {
    return proxyFor(server, env);
  } catch (error) {
    if (error instanceof ProxyError) throw new KubeConfigError(error.message, { cause: error });
    throw error;
  }
}

const anonymous = 'anonymous';

function readable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
