import { createHash } from 'node:crypto';
import type { RequestOptions } from 'node:https';
import { KubeConfig, type RequestContext } from '@kubernetes/client-node';
import { Agent, ProxyAgent, Socks5ProxyAgent, type Dispatcher } from 'undici';
import { ExecPlugin, type ExecPluginOptions } from './exec-plugin.ts';
import type { KubeUser } from './kube-config.ts';

/** The credentials of one request. */
export interface Credentials {
  readonly server: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly dispatcher: Dispatcher;
  /** Number of the configuration read that they come from. */
  readonly reading: number;
}

/**
 * A KubeConfig whose requests share connections. client-node by itself opens a new TLS connection for every request.
 * Certificate files are read for each request (client-node does that), and the pool is replaced when they differ, so a
 * rotated CA or client certificate needs no restart.
 */
export class PooledKubeConfig extends KubeConfig {
  private readonly read: () => KubeConfig;
  private readonly plugin: ExecPlugin;
  private inner: KubeConfig;
  private exec: KubeUser['exec'];
  private reading = 0;
  private pool: { readonly fingerprint: string; readonly dispatcher: Dispatcher } | undefined;

  /** `read` is called again if the credentials are refused; an error is then reported and changes nothing. */
  constructor(read: () => KubeConfig, exec: ExecPluginOptions = {}) {
    super();
    this.read = read;
    this.plugin = new ExecPlugin(exec);
    this.inner = this.take(read());
  }

  /** Rejects with the signal's reason when the signal fires: a credential plugin may take a long time. */
  async credentials({ signal }: { readonly signal: AbortSignal }): Promise<Credentials> {
    const { inner, reading, exec } = this;
    const options: RequestOptions = {};
    await inner.applyToHTTPSOptions(options);
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(options.headers ?? {})) headers[name] = String(value).trim();
    if (typeof options.auth === 'string')
      headers['Authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    if (exec !== undefined) {
      const info = exec.provideClusterInfo === true ? clusterInfo(inner, options) : undefined;
      const { token, cert, key } = await this.plugin.credential(exec, info, { signal });
      if (token !== undefined) headers['Authorization'] = `Bearer ${token}`;
      if (cert !== undefined) Object.assign(options, { cert, key });
    }
    Object.assign(headers, impersonation(inner.getCurrentUser()));
    return { server: inner.getCurrentCluster()!.server, headers, dispatcher: this.dispatcher(options), reading };
  }

  /** Only for requests that client-node sends by itself; this program uses none. */
  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    const { headers, dispatcher } = await this.credentials({ signal: AbortSignal.timeout(60_000) });
    for (const [name, value] of Object.entries(headers)) {
      if (typeof value !== 'string') throw new Error(`client-node cannot send ${name} several times`);
      context.setHeaderParam(name, value);
    }
    context.setDispatcher(dispatcher);
  }

  /**
   * Call if the server refused these credentials: everything is read again, so that no cached token survives. If
   * several requests with credentials from the same read are refused, only the first one reads again.
   */
  refresh(refused: Credentials): void {
    if (refused.reading !== this.reading) return;
    const inner = this.read();
    this.reading++;
    this.plugin.forget();
    this.inner = this.take(inner);
  }

  /** Call if TLS failed on this pool: the next request opens a new pool. Watches on the old one continue. */
  dropPool(failed: Dispatcher): void {
    if (this.pool?.dispatcher !== failed) return;
    this.pool = undefined;
    void failed.close().catch(() => undefined);
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    const pool = this.pool;
    this.pool = undefined;
    await pool?.dispatcher.destroy();
  }

  private take(inner: KubeConfig): KubeConfig {
    const user: KubeUser | null = inner.getCurrentUser();
    this.exec = user?.exec ?? undefined;
    // client-node would run the plugin for every request, without a time limit.
    inner.users = inner.users.map(({ exec: _, ...rest }) => rest);
    const { clusters, users, contexts, currentContext } = inner;
    this.loadFromOptions({ clusters, users, contexts, currentContext });
    return inner;
  }

  private dispatcher(options: RequestOptions): Dispatcher {
    const cluster = this.inner.getCurrentCluster()!;
    const { ca, cert, key, passphrase, servername, rejectUnauthorized } = options;
    const tls = Object.fromEntries(
      Object.entries({ ca, cert, key, passphrase, servername, rejectUnauthorized }).filter(([, v]) => v !== undefined),
    );
    const hash = createHash('sha256').update(`${cluster.server}\n${cluster.proxyUrl ?? ''}\n`);
    for (const [name, value] of Object.entries(tls))
      hash.update(`${name}\n`).update(Buffer.isBuffer(value) ? value : String(value));
    const fingerprint = hash.digest('base64');
    if (this.pool?.fingerprint === fingerprint) return this.pool.dispatcher;

    const old = this.pool;
    const dispatcher = open(cluster.proxyUrl, tls);
    this.pool = { fingerprint, dispatcher };
    void old?.dispatcher.close().catch(() => undefined);
    return dispatcher;
  }
}

/** Impersonation headers; client-node sends only the first one. */
function impersonation(user: KubeUser | null): Record<string, string | string[]> {
  if (user === null) return {};
  const { impersonateUid, impersonateGroups, impersonateExtra = {} } = user;
  const headers: Record<string, string | string[]> = {};
  if (impersonateUid !== undefined) headers['Impersonate-Uid'] = impersonateUid;
  if (impersonateGroups !== undefined) headers['Impersonate-Group'] = [...impersonateGroups];
  for (const [key, values] of Object.entries(impersonateExtra))
    headers[`Impersonate-Extra-${encodeURIComponent(key)}`] = [...values];
  return headers;
}

/** `spec.cluster` of an ExecCredential. */
function clusterInfo(config: KubeConfig, { ca }: RequestOptions): object {
  const { server, tlsServerName, skipTLSVerify, proxyUrl } = config.getCurrentCluster()!;
  return {
    server,
    ...(tlsServerName && { 'tls-server-name': tlsServerName }),
    ...(skipTLSVerify && { 'insecure-skip-tls-verify': true }),
    ...(ca !== undefined && { 'certificate-authority-data': Buffer.from(String(ca)).toString('base64') }),
    ...(proxyUrl && { 'proxy-url': proxyUrl }),
  };
}

/**
 * HTTP/1.1 only: each watch has its own connection, so a connection that dies silently affects nothing else and is gone
 * once its request is aborted. A dead HTTP/2 session would stay in the pool and swallow the next requests too.
 */
function open(proxy: string | undefined, tls: object): Dispatcher {
  const pool = { allowH2: false, keepAliveTimeout: 30_000, connectTimeout: 10_000 };
  const connect = { ...tls, keepAlive: true, keepAliveInitialDelay: 30_000, allowH2: false };
  if (proxy === undefined || proxy === '') return new Agent({ ...pool, connect });
  return proxy.startsWith('socks')
    ? new Socks5ProxyAgent(proxy, { ...pool, requestTls: connect })
    : new ProxyAgent({ ...pool, uri: proxy, requestTls: connect });
}
