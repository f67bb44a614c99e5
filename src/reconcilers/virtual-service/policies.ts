import type { RetrySetting } from '../../model/mesh-config.ts';
import type { Cors, Fault, StringMatch } from '../../model/route.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { isHeaderName } from './headers.ts';
import { readStringMatch } from './match.ts';
import { remarkOnShare } from './remarks.ts';

const retryConditions = new Set([
  '5xx',
  'gateway-error',
  'reset',
  'reset-before-request',
  'connect-failure',
  'retriable-4xx',
  'refused-stream',
  'retriable-status-codes',
  'retriable-headers',
  'envoy-ratelimited',
  'http3-post-connect-failure',
  'cancelled',
  'deadline-exceeded',
  'internal',
  'resource-exhausted',
  'unavailable',
]);

const corsMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', '*']);

/** In numeric order. */
const grpcStatuses = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
];

/** Milliseconds. Envoy counts whole ones; 0 means none. */
export function readTimeout(field: Field): number | undefined {
  const ms = field.duration();
  if (ms !== undefined && !Number.isInteger(ms)) field.invalid('must be a whole number of milliseconds.');
  return ms;
}

function readPositive(field: Field): number | undefined {
  const ms = readTimeout(field);
  if (ms === 0) field.invalid('must be at least 1ms.');
  return ms;
}

/** A `Percent` message: its `value`, which is 0 if absent. */
export function readPercentage(field: Field): number | undefined {
  if (!field.expectObject().isSet) return undefined;
  const value = field.get('value').number() ?? 0;
  if (value >= 0 && value <= 100) return value;
  field.get('value').invalid(`must be from 0 to 100, not ${value}.`);
  return 0;
}

export function readRetries(field: Field): RetrySetting | undefined {
  if (!field.expectObject().isSet) return undefined;
  const perTryTimeout = readTimeout(field.get('perTryTimeout'));
  const backoff = readPositive(field.get('backoff'));
  const ignorePrevious = field.get('retryIgnorePreviousHosts').boolean();
  const retryOn = field.get('retryOn');
  for (const condition of retryOn.string().split(',')) {
    const name = condition.trim();
    if (name !== '' && !retryConditions.has(name) && !/^[1-5]\d\d$/.test(name)) {
      retryOn.invalid(`${quote(name)} is neither an HTTP status nor a retry condition of Envoy.`);
    }
  }
  return {
    attempts: field.get('attempts').integer(-0x8000_0000, 0x7fff_ffff) ?? 0,
    ...(perTryTimeout === undefined ? {} : { perTryTimeout }),
    retryOn: retryOn.string(),
    retryRemoteLocalities: field.get('retryRemoteLocalities').boolean() ?? false,
    ...(ignorePrevious === undefined ? {} : { retryIgnorePreviousHosts: ignorePrevious }),
    ...(backoff === undefined ? {} : { backoff }),
  };
}

export function readFault(field: Field): Fault | undefined {
  if (!field.expectObject().isSet) return undefined;
  const delay = readDelay(field.get('delay'));
  const abort = readAbort(field.get('abort'));
  if (!field.get('delay').isSet && !field.get('abort').isSet) field.invalid('needs delay or abort.');
  return { ...(delay === undefined ? {} : { delay }), ...(abort === undefined ? {} : { abort }) };
}

function readDelay(field: Field): Fault['delay'] {
  if (!field.expectObject().isSet) return undefined;
  if (field.get('exponentialDelay').isSet && !field.get('fixedDelay').isSet) return undefined;
  const fixedDelay = readPositive(field.get('fixedDelay'));
  if (fixedDelay === undefined) field.get('fixedDelay').invalid('must set how long requests are delayed.');
  else if (fixedDelay > 0) remarkOnShare(field, 'delayed');
  const percentage = readPercentage(field.get('percentage'));
  return {
    fixedDelay: fixedDelay ?? 1,
    ...(percentage === undefined ? {} : { percentage }),
    percent: field.get('percent').integer(0, 100) ?? 0,
  };
}

function readAbort(field: Field): Fault['abort'] {
  if (!field.expectObject().isSet) return undefined;
  const http = field.get('httpStatus').integer(200, 599);
  const grpc = field.get('grpcStatus');
  if (http !== undefined && grpc.isSet) field.invalid('has httpStatus and grpcStatus; keep one of them.');
  const percentage = readPercentage(field.get('percentage'));
  const share = percentage === undefined ? {} : { percentage };
  if (http !== undefined) {
    if (!grpc.isSet) remarkOnShare(field, 'aborted');
    return { status: { kind: 'http', code: http }, ...share };
  }
  if (!grpc.isSet && (field.get('httpStatus').isSet || field.get('http2Error').isSet)) return undefined;
  if (!grpc.isSet) {
    field.findings.report(field.path, 'Ineffective', 'has no status and is ignored; set httpStatus or grpcStatus.');
    return undefined;
  }
  const code = grpcStatuses.indexOf(grpc.string());
  if (code < 0) grpc.invalid(`${quote(grpc.string())} is not the name of a gRPC status.`);
  else remarkOnShare(field, 'aborted');
  return { status: { kind: 'grpc', code: Math.max(code, 0) }, ...share };
}

export function readCors(field: Field): Cors | undefined {
  if (!field.expectObject().isSet) return undefined;
  const maxAge = field.get('maxAge').duration();
  const credentials = field.get('allowCredentials').boolean();
  const methods = field.get('allowMethods');
  for (const method of methods.strings()) {
    if (!corsMethods.has(method)) methods.invalid(`${quote(method)} is not an HTTP method.`);
  }
  return {
    allowOrigins: readOrigins(field),
    allowMethods: methods.strings(),
    allowHeaders: readHeaderNames(field.get('allowHeaders')),
    exposeHeaders: readHeaderNames(field.get('exposeHeaders')),
    ...(maxAge === undefined ? {} : { maxAge }),
    ...(credentials === undefined ? {} : { allowCredentials: credentials }),
    unmatchedPreflights: field.get('unmatchedPreflights').oneOf('UNSPECIFIED', 'FORWARD', 'IGNORE'),
  };
}

/** `allowOrigins`, or its deprecated form without matches. */
function readOrigins(field: Field): StringMatch[] {
  const origins = field.get('allowOrigins');
  if (!origins.isSet) {
    return field
      .get('allowOrigin')
      .strings()
      .map((value) => ({ kind: 'exact', value }));
  }
  return origins.objects().map((element) => {
    const match = readStringMatch(element) ?? { kind: 'present' };
    if (match.kind === 'present') element.invalid('must be exact, prefix or regex.');
    return match;
  });
}

function readHeaderNames(field: Field): string[] {
  return field.list().map((element) => {
    const name = element.string();
    if (!isHeaderName(name)) element.invalid(`${quote(name)} is not a header name.`);
    return name;
  });
}
