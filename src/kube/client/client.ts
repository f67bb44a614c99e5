import { request, type Dispatcher } from 'undici';
import { ApiError, errorOfAnswer, errorOfTransport, isTlsFailure } from './api-error.ts';
import { beginningOf, textOf } from './body.ts';
import type { Credentials, PooledKubeConfig } from './credentials.ts';
import type { Pace } from './pace.ts';

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface CallOptions {
  readonly query?: Query;
  readonly signal: AbortSignal;
}

/**
 * The API server as raw JSON by path. Every call rejects with an `ApiError`, or with the reason of its signal if that
 * fired. The only retry here is one after credentials were refused.
 */
export interface KubeApi {
  get(path: string, options: CallOptions): Promise<unknown>;
  post(path: string, body: unknown, options: CallOptions): Promise<unknown>;
  put(path: string, body: unknown, options: CallOptions): Promise<unknown>;
  /** A JSON merge patch (RFC 7386). If it contains `metadata.resourceVersion`, it can conflict like a PUT. */
  patch(path: string, body: unknown, options: CallOptions): Promise<unknown>;
  /** A DELETE; `body`: DeleteOptions. */
  remove(path: string, body: unknown, options: CallOptions): Promise<unknown>;
  /** The bytes of an endless response as they arrive, without a time limit between them. */
  stream(path: string, options: CallOptions): Promise<AsyncIterable<Uint8Array>>;
}

export interface KubeClientOptions {
  readonly config: PooledKubeConfig;
  readonly userAgent?: string;
  /** Milliseconds without a byte after which a non-streaming request fails. */
  readonly timeout?: number;
  /** Milliseconds after which a non-streaming request fails, even if bytes are arriving. */
  readonly deadline?: number;
  /** Maximum bytes in a non-streaming response. */
  readonly largest?: number;
  /** How fast responses are read, in bytes; absent: as fast as they come. */
  readonly pace?: Pace;
}

/** A page of 500 objects is about 10 MB; parsed, its objects take several times as much. */
const LARGEST = 64 * 1024 * 1024;

/**
 * What a request, a line of a watch, and a value in JSON cost at least, in bytes of the pace: small ones take time, too,
 * and `{}` takes 20 times as much memory as text.
 */
const LEAST_REQUEST = 16 * 1024;
const LEAST_LINE = 1024;
const LEAST_VALUE = 24;

/** Maximum bytes read from an error response. */
const LARGEST_ERROR = 64 * 1024;

/** The server forgets the pages of a list after this time. */
const DEADLINE = 5 * 60_000;

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export class KubeClient implements KubeApi {
  readonly config: PooledKubeConfig;
  private readonly userAgent: string;
  private readonly timeout: number;
  private readonly deadline: number;
  private readonly largest: number;
  private readonly pace: Pace | undefined;

  constructor(options: KubeClientOptions) {
    this.config = options.config;
    this.userAgent = options.userAgent ?? 'fairlead';
    this.timeout = options.timeout ?? 30_000;
    this.deadline = options.deadline ?? DEADLINE;
    this.largest = options.largest ?? LARGEST;
    this.pace = options.pace;
  }

  get(path: string, options: CallOptions): Promise<unknown> {
    return this.call('GET', path, undefined, options);
  }

  post(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('POST', path, body, options);
  }

  put(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('PUT', path, body, options);
  }

  patch(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('PATCH', path, body, options);
  }

  remove(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.call('DELETE', path, body, options);
  }

  async stream(path: string, options: CallOptions): Promise<AsyncIterable<Uint8Array>> {
    const { body } = await this.send('GET', path, undefined, { ...options, bodyTimeout: 0 });
    return this.pace === undefined ? body : paced(body, this.pace, options.signal);
  }

  /** Closes all connections, including those of streams. */
  async close(): Promise<void> {
    await this.config.close();
  }

  private async call(method: Method, path: string, body: unknown, options: CallOptions): Promise<unknown> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.deadline);
    const signal = AbortSignal.any([options.signal, late.signal]);
    let text: string;
    try {
      const answer = await this.send(method, path, body, { ...options, signal, bodyTimeout: this.timeout });
      text = await textOf(answer.body, this.largest);
    } catch (error) {
      options.signal.throwIfAborted();
      throw late.signal.aborted ? tooLate(method, path) : errorOfTransport(error);
    } finally {
      clearTimeout(timer);
    }
    await this.pace?.take(costOf(text), options);
    options.signal.throwIfAborted();
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new ApiError(`response to ${method} ${path} is not JSON`, {
        code: 200,
        reason: 'NotJson',
        retryable: true,
        cause,
      });
    }
  }

  private async send(
    method: Method,
    path: string,
    body: unknown,
    options: CallOptions & { readonly bodyTimeout: number },
  ): Promise<Dispatcher.ResponseData> {
    const first = await this.credentials(options);
    const refused = await this.attempt(first, method, path, body, options);
    if (refused.statusCode !== 401) return this.accepted(refused);
    await refused.body.dump();
    try {
      this.config.refresh(first);
    } catch (cause) {
      throw new ApiError('credentials were refused and cannot be read again', {
        code: 401,
        reason: 'Unauthorized',
        retryable: true,
        cause,
      });
    }
    return this.accepted(await this.attempt(await this.credentials(options), method, path, body, options));
  }

  private async attempt(
    credentials: Credentials,
    method: Method,
    path: string,
    body: unknown,
    { query = {}, signal, bodyTimeout }: CallOptions & { readonly bodyTimeout: number },
  ): Promise<Dispatcher.ResponseData> {
    const { server, headers, dispatcher } = credentials;
    await this.pace?.take(LEAST_REQUEST, { signal });
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    signal.throwIfAborted();
    try {
      return await request(`${server}${path}${search.size === 0 ? '' : `?${search}`}`, {
        method,
        dispatcher,
        signal,
        bodyTimeout,
        headersTimeout: this.timeout,
        headers: {
          ...headers,
          accept: 'application/json',
          'user-agent': this.userAgent,
          ...(body === undefined ? {} : { 'content-type': contentTypes[method] }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (raw) {
      signal.throwIfAborted();
      const error = errorOfTransport(raw);
      if (isTlsFailure(error)) this.config.dropPool(dispatcher);
      throw error;
    }
  }

  private async accepted(answer: Dispatcher.ResponseData): Promise<Dispatcher.ResponseData> {
    const { statusCode, headers } = answer;
    if (statusCode >= 200 && statusCode < 300) return answer;
    const retryAfter = Number(headers['retry-after']);
    const text = await beginningOf(answer.body, LARGEST_ERROR).catch(() => '');
    throw errorOfAnswer(statusCode, text, Number.isFinite(retryAfter) ? retryAfter : 0);
  }

  private async credentials({ signal }: CallOptions): Promise<Credentials> {
    try {
      return await this.config.credentials({ signal });
    } catch (cause) {
      signal.throwIfAborted();
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new ApiError(`credentials cannot be read: ${message}`, {
        code: 0,
        reason: 'NoCredentials',
        retryable: true,
        cause,
      });
    }
  }
}

async function* paced(body: AsyncIterable<Uint8Array>, pace: Pace, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const bytes of body) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    await pace.take(Math.max(costOf(chunk), LEAST_LINE * countOf('\n', chunk)), { signal });
    // Whoever reads it has dealt with it when the next chunk is asked for.
    const done = pace.work();
    yield chunk;
    done();
  }
}

function costOf(json: string | Buffer): number {
  return Math.max(json.length, LEAST_VALUE * countOf(',', json));
}

function countOf(character: string, text: string | Buffer): number {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) count++;
  return count;
}

function tooLate(method: Method, path: string): ApiError {
  return new ApiError(`${method} ${path} took too long`, { code: 0, reason: 'Deadline', retryable: true });
}

const contentTypes: Readonly<Record<Method, string>> = {
  GET: 'application/json',
  POST: 'application/json',
  PUT: 'application/json',
  PATCH: 'application/merge-patch+json',
  DELETE: 'application/json',
};
