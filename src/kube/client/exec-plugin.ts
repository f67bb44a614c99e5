import { spawn } from 'node:child_process';
import { isObject } from '../../api/json.ts';

/**
 * `exec` of a kubeconfig's user: a program that prints credentials.
 * https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
 */
export interface ExecConfig {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  /** Shown if the program is not found. */
  readonly installHint?: string;
}

/** `status` of the printed ExecCredential. */
export interface ExecCredential {
  readonly token?: string;
  /** PEM. */
  readonly cert?: string;
  readonly key?: string;
}

export interface ExecPluginOptions {
  /** Time limit of a call, in milliseconds. */
  readonly timeout?: number;
  /** Wall clock: milliseconds since 1970. */
  readonly now?: () => number;
}

interface Call {
  readonly result: Promise<ExecCredential>;
  waiting: number;
  readonly stop: AbortController;
}

/** A credential is about 2 KB. In characters, as is the next limit. */
const longestOutput = 1024 * 1024;
const longestComplaint = 4 * 1024;

/**
 * Runs a credential plugin, one call at a time however many requests wait for it, and caches the credential until it
 * expires. A call ends at the time limit, or when nothing waits for it any more; so do the processes that it started.
 */
export class ExecPlugin {
  private readonly timeout: number;
  private readonly now: () => number;
  private kept: { readonly credential: ExecCredential; readonly expires: number } | undefined;
  private call: Call | undefined;

  constructor({ timeout = 30_000, now = Date.now }: ExecPluginOptions = {}) {
    this.timeout = timeout;
    this.now = now;
  }

  /** `info`: `spec.cluster` of the plugin's input, if the plugin asks for it. */
  async credential(
    exec: ExecConfig,
    info: object | undefined,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<ExecCredential> {
    signal.throwIfAborted();
    if (this.kept !== undefined && this.now() < this.kept.expires) return this.kept.credential;
    const call = (this.call ??= this.begin(exec, info));
    call.waiting++;
    try {
      return await orAborted(call.result, signal);
    } finally {
      if (--call.waiting === 0) call.stop.abort();
    }
  }

  /** Call if the server refused the credential. */
  forget(): void {
    this.kept = undefined;
  }

  private begin(exec: ExecConfig, info: object | undefined): Call {
    const stop = new AbortController();
    const call = { result: this.finish(exec, info, stop.signal), waiting: 0, stop };
    // Synchronously with the last waiter's end, so that the next request starts a new call.
    stop.signal.addEventListener('abort', () => this.call === call && (this.call = undefined));
    return call;
  }

  private async finish(exec: ExecConfig, info: object | undefined, signal: AbortSignal): Promise<ExecCredential> {
    const { credential, expires } = parse(exec, await run(exec, info, this.timeout, signal));
    this.kept = { credential, expires };
    return credential;
  }
}

/** The plugin's output. Its process group is killed however it ends: a shell's children hold the pipes open. */
function run(exec: ExecConfig, info: object | undefined, timeout: number, signal: AbortSignal): Promise<string> {
  const { apiVersion = 'client.authentication.k8s.io/v1', command, args, env, installHint } = exec;
  const told = { apiVersion, kind: 'ExecCredential', spec: { interactive: false, ...(info && { cluster: info }) } };
  return new Promise((resolve, reject) => {
    const child = spawn(command, args ?? [], {
      env: {
        ...process.env,
        ...Object.fromEntries((env ?? []).map(({ name, value }) => [name, value])),
        KUBERNETES_EXEC_INFO: JSON.stringify(told),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let output = '';
    let complaint = '';
    let group = child.pid;
    const killAll = (): void => {
      if (group === undefined) return;
      try {
        process.kill(-group, 'SIGKILL');
      } catch {
        // The group is gone.
      }
    };
    const fail = (why: string, cause?: unknown): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      killAll();
      // A process that left the group may still hold the other ends of the pipes.
      child.stdout.destroy();
      child.stderr.destroy();
      reject(new Error(`credential plugin ${command}: ${why}`, { cause }));
    };
    const onAbort = (): void => fail('no longer needed');
    const timer = setTimeout(() => fail(`timed out after ${timeout / 1000} s`), timeout);
    signal.addEventListener('abort', onAbort);

    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > longestOutput) fail(`printed more than ${longestOutput} characters`);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(0, longestComplaint);
    });
    child.on('error', (cause: NodeJS.ErrnoException) => {
      const hint = cause.code === 'ENOENT' && installHint !== undefined ? `; ${installHint.trim()}` : '';
      fail(`cannot be started: ${cause.code ?? cause.message}${hint}`, cause);
    });
    child.on('exit', () => {
      killAll();
      // The id may be reused from now on.
      group = undefined;
    });
    child.on('close', (code, killedBy) => {
      if (code !== 0) return fail(`ended with ${code ?? killedBy}: ${complaint.trim() || 'no error output'}`);
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      resolve(output);
    });
  });
}

function parse(
  { command }: ExecConfig,
  output: string,
): { readonly credential: ExecCredential; readonly expires: number } {
  // The message never quotes the output: it may contain credentials.
  const wrong = (what: string): Error => new Error(`credential plugin ${command}: ${what}`);
  let printed: unknown;
  try {
    printed = JSON.parse(output);
  } catch {
    throw wrong('printed invalid JSON');
  }
  const status = isObject(printed) && isObject(printed['status']) ? printed['status'] : {};
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status;
  const credential = {
    ...(typeof token === 'string' && token !== '' ? { token } : {}),
    ...(typeof cert === 'string' && typeof key === 'string' ? { cert, key } : {}),
  };
  if (Object.keys(credential).length === 0) throw wrong('printed neither a token nor a certificate with its key');
  const expires = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : Infinity;
  if (Number.isNaN(expires)) throw wrong('printed an invalid expirationTimestamp');
  return { credential, expires };
}

/** Rejects with the signal's reason if the signal fires first. */
async function orAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
