import { isObject } from '../../api/json.ts';

/** Why a request to the API server failed. The message never contains credentials. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 if there was no response. */
  readonly code: number;
  /** `reason` of the Kubernetes Status, or the code of the transport error: `Conflict`, `ECONNREFUSED`. */
  readonly reason: string;
  /** The same request may succeed later. */
  readonly retryable: boolean;
  /** Milliseconds that the server asked to wait; 0 if it did not ask. */
  readonly retryAfter: number;

  constructor(
    message: string,
    options: { code: number; reason: string; retryable: boolean; retryAfter?: number; cause?: unknown },
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = options.code;
    this.reason = options.reason;
    this.retryable = options.retryable;
    this.retryAfter = options.retryAfter ?? 0;
  }
}

/** Limits the wait that a header can ask for: any proxy in between may have set it. */
const LONGEST_WAIT = 60_000;

/** The error for an HTTP response. The body is a Kubernetes Status, or whatever a proxy in between sent. */
export function errorOfAnswer(code: number, body: string, retryAfterSeconds = 0): ApiError {
  const status = parseStatus(body);
  const { reason = 'Unknown' } = status ?? { reason: 'NotKubernetes' };
  const message = (status?.message ?? body.trim().slice(0, 200)).slice(0, 1_000) || `status ${code}`;
  return new ApiError(`${code} ${reason}: ${message}`, {
    code,
    reason,
    retryable: code >= 500 || code === 429 || code === 401 || code === 403 || code === 408,
    retryAfter: Math.min(retryAfterSeconds * 1000, LONGEST_WAIT),
  });
}

/** The error for a Status object, as watch streams carry it in events of type ERROR. */
export function errorOfStatus(status: unknown): ApiError {
  const code = isObject(status) && typeof status['code'] === 'number' ? status['code'] : 500;
  return errorOfAnswer(code, JSON.stringify(status) ?? '');
}

/** The error for a request without a response. */
export function errorOfTransport(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const causes: unknown[] = [];
  for (let e: unknown = error; e instanceof Error && causes.length < 5; e = e.cause) causes.push(e);
  const codes = causes.map((e) => (isObject(e) && typeof e['code'] === 'string' ? e['code'] : '')).filter(Boolean);
  const reason = codes.find((c) => !c.startsWith('UND_ERR_')) ?? codes[0] ?? 'TransportError';
  const message = error instanceof AggregateError || !(error instanceof Error) ? reason : error.message;
  return new ApiError(message, { code: 0, reason, retryable: true, cause: error });
}

/** Whether keys, certificates or their verification caused the error, so that reading them again may help. */
export function isTlsFailure(error: ApiError): boolean {
  return /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|EPROTO|ERR_OSSL|HOSTNAME_MISMATCH|INVALID_CA)/.test(
    error.reason,
  );
}

/** The resourceVersion or the page is older than the history that the server keeps. */
export function isExpired(error: ApiError): boolean {
  return error.code === 410 || error.reason === 'Expired' || error.reason === 'Gone';
}

/** The server does not take what was sent, whenever it is sent. It may be wrong about a 404: other servers answer so, too. */
export function isRefused({ code, retryable }: ApiError): boolean {
  return code >= 400 && code < 500 && code !== 404 && code !== 409 && !retryable;
}

/** The server cannot resume from this resourceVersion: too old, too new (a restored backup), or invalid. */
export function needsList(error: ApiError): boolean {
  const refused = error.code >= 400 && error.code < 500 && !error.retryable;
  return isExpired(error) || refused || error.message.includes('Too large resource version');
}

function parseStatus(body: string): { reason?: string; message?: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value['kind'] !== 'Status') return undefined;
  const { reason, message } = value;
  return {
    // It is shown to people, and told apart from others: servers send one of a few words.
    ...(typeof reason === 'string' && /^[A-Za-z]{1,64}$/.test(reason) ? { reason } : {}),
    ...(typeof message === 'string' ? { message } : {}),
  };
}
