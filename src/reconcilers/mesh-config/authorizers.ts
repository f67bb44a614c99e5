import { quote } from '../../api/quote.ts';
import type { Authorizer } from '../../model/authorization.ts';
import type { Field } from '../field.ts';
import { problemOfFormat } from '../virtual-service/header-format.ts';

/** Milliseconds, as in Istio. */
const TIMEOUT = 600_000;
/** Envoy keeps this much of each request. */
const mostBodyBytes = 2 ** 32 - 1;

/** Extension providers for AuthorizationPolicies with action CUSTOM. A policy that names another one denies. */
export function readAuthorizers(providers: Field): readonly Authorizer[] {
  const seen = new Map<string, number>();
  const all = providers.objects();
  for (const provider of all) {
    const name = provider.get('name').string();
    seen.set(name, (seen.get(name) ?? 0) + 1);
  }
  return all.flatMap((provider) => {
    const [http, grpc] = [provider.get('envoyExtAuthzHttp'), provider.get('envoyExtAuthzGrpc')];
    if (!http.isSet && !grpc.isSet) return [];
    const before = provider.findings.invalidValues;
    const name = readName(provider.get('name'), seen);
    const found = readAuthorizer(name, http.isSet ? 'http' : 'grpc', (http.isSet ? http : grpc).expectObject());
    return provider.findings.invalidValues > before ? [] : [found];
  });
}

function readName(field: Field, seen: ReadonlyMap<string, number>): string {
  const name = field.string();
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))
    field.invalid(`${quote(name)} is not a name of at most 63 lower-case letters, digits and inner hyphens.`);
  else if ((seen.get(name) ?? 0) > 1) field.invalid(`${quote(name)} is the name of several extension providers.`);
  return name;
}

function readAuthorizer(name: string, protocol: Authorizer['protocol'], field: Field): Authorizer {
  const [service, port] = [field.get('service'), field.get('port')];
  if (service.string() === '') service.invalid('is missing: name a host, or namespace/host.');
  if (!port.isSet) port.invalid('is missing.');
  const timeout = field.get('timeout').duration();
  const isHttp = protocol === 'http';
  const lists = isHttp ? readHeaderLists(field) : noHeaders;
  return {
    name,
    protocol,
    service: service.string(),
    port: port.integer(1, 65_535) ?? 0,
    timeout: timeout ?? TIMEOUT,
    failOpen: field.get('failOpen').boolean() ?? false,
    ...(field.get('clearRouteCache').boolean() === true && { clearRouteCache: true }),
    statusOnError: readStatus(field.get('statusOnError')),
    pathPrefix: isHttp ? readPathPrefix(field.get('pathPrefix')) : '',
    includeRequestBody: readBody(field.get('includeRequestBodyInCheck').expectObject()),
    ...lists,
  };
}

type HeaderLists = Pick<
  Authorizer,
  | 'includeRequestHeaders'
  | 'additionalHeaders'
  | 'headersToUpstreamOnAllow'
  | 'headersToDownstreamOnDeny'
  | 'headersToDownstreamOnAllow'
>;

const noHeaders: HeaderLists = {
  includeRequestHeaders: [],
  additionalHeaders: [],
  headersToUpstreamOnAllow: [],
  headersToDownstreamOnDeny: [],
  headersToDownstreamOnAllow: [],
};

function readHeaderLists(field: Field): HeaderLists {
  const included = field.get('includeRequestHeadersInCheck');
  return {
    // The second is the name before Istio 1.11.
    includeRequestHeaders: names(included.isSet ? included : field.get('includeHeadersInCheck')),
    additionalHeaders: field
      .get('includeAdditionalHeadersInCheck')
      .entries()
      .map(([name, value]) => readHeader(name, value)),
    headersToUpstreamOnAllow: names(field.get('headersToUpstreamOnAllow')),
    headersToDownstreamOnDeny: names(field.get('headersToDownstreamOnDeny')),
    headersToDownstreamOnAllow: names(field.get('headersToDownstreamOnAllow')),
  };
}

/** Envoy reads the value as a format, in which % begins a command. */
function readHeader(name: string, field: Field): { readonly name: string; readonly value: string } {
  const value = field.string();
  if (!/^[-!#$%&'*+.^_`|~0-9A-Za-z]+$/.test(name)) field.invalid(`${quote(name)} is not a header name.`);
  if (/[\0\r\n]/.test(value)) field.invalid('must not have line breaks.');
  const problem = problemOfFormat(value, true);
  if (problem !== undefined) field.findings.report(field.path, problem.reason, problem.message);
  return { name, value };
}

function names(field: Field): readonly string[] {
  return field.list().map((element) => {
    const name = element.string();
    if (name === '' || name === '*') element.invalid('must be a header name, or the beginning or end of one with *.');
    return name;
  });
}

function readPathPrefix(field: Field): string {
  const prefix = field.string();
  if (prefix !== '' && !prefix.startsWith('/')) field.invalid(`${quote(prefix)} must begin with a slash.`);
  return prefix;
}

/** The codes that Envoy has names for. */
const STATUS_CODES: ReadonlySet<number> = new Set([
  100, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 402, 403,
  404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 424, 426, 428, 429, 431, 500,
  501, 502, 503, 504, 505, 506, 507, 508, 510, 511,
]);

/** A text of digits in Istio's API. */
function readStatus(field: Field): number | undefined {
  if (!field.isSet) return undefined;
  const text = field.string();
  if (text === '') return undefined;
  if (/^\d{3}$/.test(text) && STATUS_CODES.has(Number(text))) return Number(text);
  field.invalid(`${quote(text)} is not an HTTP status code; write one such as ${quote('503')}.`);
  return undefined;
}

function readBody(field: Field): Authorizer['includeRequestBody'] {
  if (!field.isSet) return undefined;
  return {
    maxRequestBytes: readSize(field.get('maxRequestBytes')),
    allowPartialMessage: field.get('allowPartialMessage').boolean() ?? false,
    packAsBytes: field.get('packAsBytes').boolean() ?? false,
  };
}

function readSize(field: Field): number {
  if (!field.isSet) field.invalid('is missing.');
  return field.integer(1, mostBodyBytes) ?? 1;
}
