import { Buffer } from 'node:buffer';
import type { DirectResponse, Rewrite } from '../../model/route.ts';
import type {
  ForwardOptions,
  HttpAction,
  HttpDestination,
  HttpRoute,
  Mirror,
  RedirectAction,
} from '../../model/virtual-service.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { problemOfRewrite, tooManyRegexes, workOf } from '../regex.ts';
import { readHeaderOperations, readHeaderText } from './headers.ts';
import { readHttpMatch } from './match.ts';
import { readDestination, type NameContext } from './names.ts';
import { remarkOnPlainText, remarkOnSubstitution } from './remarks.ts';
import { readCors, readFault, readPercentage, readRetries, readTimeout } from './policies.ts';

const maxBody = 1024 * 1024;
/** Envoy adds up a route's weights in 32 bits. */
const maxWeights = 0xffff_ffff;

export interface HttpContext extends NameContext {
  /** The object is in the root namespace. */
  readonly byRoot: boolean;
}

/** One element of `spec.http`. */
export function readHttpRoute(field: Field, context: HttpContext): HttpRoute {
  const headers = readHeaderOperations(field.get('headers'), context.byRoot);
  const fault = readFault(field.get('fault'));
  const cors = readCors(field.get('corsPolicy'));
  const matches = field
    .get('match')
    .objects()
    .map((match) => readHttpMatch(match, context.namespace));
  return {
    name: field.get('name').string(),
    object: field.findings.object,
    field: field.path,
    matches,
    action: readAction(field, context),
    ...(headers === undefined ? {} : { headers }),
    ...(fault === undefined ? {} : { fault }),
    ...(cors === undefined ? {} : { cors }),
  };
}

/** What each action excludes. */
const excludes: readonly (readonly [string, readonly string[]])[] = [
  ['redirect', ['route', 'directResponse', 'fault', 'rewrite']],
  ['directResponse', ['route', 'fault', 'rewrite']],
  ['delegate', ['route', 'redirect']],
];

function readAction(field: Field, context: HttpContext): HttpAction {
  const has = (name: string): boolean => {
    const member = field.get(name);
    return member.isSet && !(Array.isArray(member.value) && member.value.length === 0);
  };
  for (const [action, others] of excludes) {
    const clash = has(action) ? others.filter(has) : [];
    if (clash.length > 0)
      field.get(action).invalid(`cannot be combined with ${clash.join(' and ')}; keep one of them.`);
  }
  const options = (): ForwardOptions => readForwardOptions(field, context);
  if (has('delegate')) {
    const delegate = field.get('delegate').expectObject();
    const name = delegate.get('name').string();
    if (name === '') delegate.get('name').invalid('must name the VirtualService that has the routes.');
    const directResponse = has('directResponse') ? readDirectResponse(field.get('directResponse')) : undefined;
    return {
      kind: 'delegate',
      namespace: delegate.get('namespace').string() || context.namespace,
      name,
      ...(directResponse === undefined ? {} : { directResponse }),
      ...options(),
    };
  }
  if (has('redirect')) return readRedirect(field.get('redirect'), field);
  if (has('directResponse')) return readDirectResponse(field.get('directResponse'));
  if (!has('route')) field.invalid('needs one of route, redirect, directResponse and delegate.');
  return { kind: 'forward', destinations: readDestinations(field.get('route'), context), ...options() };
}

function readDestinations(field: Field, context: HttpContext): HttpDestination[] {
  const destinations = field.objects().map((element): HttpDestination => {
    const destination = element.get('destination');
    if (!destination.expectObject().isSet) destination.invalid('must name a host.');
    const headers = readHeaderOperations(element.get('headers'), context.byRoot);
    return {
      ...readDestination(destination, context),
      weight: element.get('weight').integer(0, 0x7fff_ffff) ?? 0,
      ...(headers === undefined ? {} : { headers }),
    };
  });
  checkWeights(field, destinations);
  return destinations;
}

/** A single destination gets everything, whatever its weight; of several, at least one needs a weight. */
export function checkWeights(field: Field, destinations: readonly { readonly weight: number }[]): void {
  const total = destinations.reduce((sum, { weight }) => sum + weight, 0);
  if (destinations.length > 1 && total === 0) field.invalid('has several destinations without a weight; set weights.');
  if (total > maxWeights) field.invalid(`has weights that add up to ${total}; the maximum is ${maxWeights}.`);
}

function readForwardOptions(field: Field, context: NameContext): ForwardOptions {
  const rewrite = readRewrite(field.get('rewrite'));
  const timeout = readTimeout(field.get('timeout'));
  const retries = readRetries(field.get('retries'));
  const mirrors = readMirrors(field, context);
  return {
    ...(rewrite === undefined ? {} : { rewrite }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(retries === undefined ? {} : { retries }),
    ...(mirrors === undefined ? {} : { mirrors }),
  };
}

function readRewrite(field: Field): Rewrite | undefined {
  if (!field.expectObject().isSet) return undefined;
  const uri = readHeaderText(field.get('uri'));
  const authority = readHeaderText(field.get('authority'));
  const regex = field.get('uriRegexRewrite').expectObject();
  remarkOnPlainText(field.get('uri'), uri);
  remarkOnPlainText(field.get('authority'), authority);
  if (uri === '' && authority === '' && !regex.isSet) field.invalid('needs uri, uriRegexRewrite or authority.');
  if (!regex.isSet) return { authority, ...(uri === '' ? {} : { uri }) };
  if (uri !== '') field.invalid('has uri and uriRegexRewrite; keep one of them.');
  const match = regex.get('match').string();
  const rewrite = readHeaderText(regex.get('rewrite'));
  remarkOnSubstitution(regex.get('rewrite'), rewrite);
  const problem = regex.findings.spend(workOf(match)) ? problemOfRewrite(match, rewrite) : tooManyRegexes;
  if (problem !== undefined) regex.get('match').invalid(`${quote(match)} ${problem}.`);
  return { authority, regex: { match, rewrite } };
}

function readMirrors(field: Field, context: NameContext): Mirror[] | undefined {
  const single = field.get('mirror');
  const several = field.get('mirrors').objects();
  if (!single.expectObject().isSet && several.length === 0) return undefined;
  if (single.isSet && several.length > 0)
    field.get('mirrors').invalid('cannot be combined with mirror; keep one of them.');
  const found: Mirror[] = several.map((element) => {
    const destination = element.get('destination');
    if (!destination.expectObject().isSet) destination.invalid('must name a host.');
    return mirrorOf(readDestination(destination, context), readPercentage(element.get('percentage')), undefined);
  });
  if (single.isSet) {
    // The schema still has the older Go name of the field.
    const whole = field.get('mirrorPercent').integer(0, 100) ?? field.get('mirror_percent').integer(0, 100);
    found.push(mirrorOf(readDestination(single, context), readPercentage(field.get('mirrorPercentage')), whole));
  }
  return found.filter((mirror) => mirror.percentage?.value !== 0);
}

function mirrorOf(
  destination: Mirror['destination'],
  percentage: number | undefined,
  whole: number | undefined,
): Mirror {
  if (percentage !== undefined) return { destination, percentage: { value: percentage, whole: false } };
  return whole === undefined ? { destination } : { destination, percentage: { value: whole, whole: true } };
}

function readRedirect(field: Field, route: Field): RedirectAction {
  field.expectObject();
  const authority = readHeaderText(field.get('authority'));
  const uri = readHeaderText(field.get('uri'));
  remarkOnPlainText(field.get('uri'), uri);
  remarkOnPlainText(field.get('authority'), authority);
  const prefix = field.get('prefixRewrite');
  const prefixRewrite = prefix.isSet ? readHeaderText(prefix) : undefined;
  const scheme = field.get('scheme').string();
  const number = field.get('port').integer(1, 65_535);
  const derive = field.get('derivePort');
  const port = number ?? (derive.isSet ? derive.oneOf('FROM_PROTOCOL_DEFAULT', 'FROM_REQUEST_PORT') : undefined);
  if (number !== undefined && derive.isSet) field.invalid('has port and derivePort; keep one of them.');
  if (scheme !== '' && scheme !== 'http' && scheme !== 'https') {
    field.get('scheme').invalid(`${quote(scheme)} is neither http nor https.`);
  }
  if (prefixRewrite !== undefined) {
    if (uri !== '') field.invalid('has uri and prefixRewrite; keep one of them.');
    const byPrefix = route
      .get('match')
      .objects()
      .every((match) => match.get('uri').get('prefix').isSet);
    if (!byPrefix) prefix.invalid('needs a uri prefix in every match of the route.');
  }
  if (authority === '' && uri === '' && prefixRewrite === undefined && scheme === '' && port === undefined) {
    field.invalid('changes nothing; set uri, authority, scheme or port.');
  }
  return {
    kind: 'redirect',
    authority,
    uri,
    ...(prefixRewrite === undefined ? {} : { prefixRewrite }),
    scheme,
    ...(port === undefined ? {} : { port }),
    code: readRedirectCode(field.get('redirectCode')),
  };
}

function readRedirectCode(field: Field): RedirectAction['code'] {
  const code = field.number() ?? 0;
  switch (code) {
    case 0:
      return 301;
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return code;
    default:
      field.invalid(`${code} is not a redirect status that Envoy supports; use 301, 302, 303, 307 or 308.`);
      return 301;
  }
}

function readDirectResponse(field: Field): DirectResponse {
  const status = field.expectObject().get('status').integer(200, 599);
  if (status === undefined) field.get('status').invalid('must be an HTTP status from 200 to 599.');
  const bodyField = field.get('body').expectObject();
  const body = readBody(bodyField);
  if (body !== undefined && Buffer.byteLength(body) > maxBody) bodyField.invalid(`must have at most ${maxBody} bytes.`);
  return { kind: 'directResponse', status: status ?? 500, ...(body === undefined ? {} : { body }) };
}

function readBody(field: Field): string | Uint8Array | undefined {
  const bytes = field.get('bytes');
  if (!bytes.isSet) return field.get('string').isSet ? field.get('string').string() : undefined;
  if (field.get('string').isSet) field.invalid('has string and bytes; keep one of them.');
  const text = bytes.string();
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) bytes.invalid('is not base64.');
  return new Uint8Array(Buffer.from(text, 'base64'));
}
