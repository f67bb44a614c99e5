import type {
  BackendUtilization,
  ConsistentHash,
  HashKey,
  LoadBalancer,
  LocalityLbSetting,
} from '../../model/traffic-policy.ts';
import type { Field } from '../field.ts';
import { positiveDuration, present, share, wideCount } from './quantities.ts';
import { isPrime } from '../../model/ring-sizes.ts';
import { quote } from '../../api/quote.ts';
import { problemOfHeaderText } from '../virtual-service/headers.ts';

/**
 * The largest ring that is served. Envoy allows up to eight times as much, but builds rings on its main thread, which
 * then does not respond for seconds.
 */
const maxRingSize = 1_048_576;

/** Istio's limit; Envoy rejects larger tables. */
const maxTableSize = 5_000_010;

export function readLoadBalancer(field: Field): LoadBalancer | undefined {
  if (!field.expectObject().isSet) return undefined;
  const simple = field.get('simple');
  const consistentHash = readConsistentHash(field.get('consistentHash'));
  if (simple.isSet && consistentHash !== undefined)
    simple.invalid('cannot be combined with consistentHash; remove one.');
  const backendUtilization = readBackendUtilization(field.get('backendUtilization'));
  if (backendUtilization !== undefined && (simple.isSet || consistentHash !== undefined))
    field
      .get('backendUtilization')
      .invalid(`cannot be combined with ${simple.isSet ? 'simple' : 'consistentHash'}; remove one.`);
  const localityLb = readLocality(field.get('localityLbSetting'));
  const warmup = readWarmup(field.get('warmup'));
  const warmupDuration = positiveDuration(field.get('warmupDurationSecs'));
  return {
    ...(simple.isSet
      ? {
          simple: simple.oneOf('UNSPECIFIED', 'LEAST_CONN', 'LEAST_REQUEST', 'RANDOM', 'PASSTHROUGH', 'ROUND_ROBIN'),
        }
      : {}),
    ...(consistentHash === undefined ? {} : { consistentHash }),
    ...(backendUtilization === undefined ? {} : { backendUtilization }),
    ...(localityLb === undefined ? {} : { localityLb }),
    ...(warmup === undefined ? {} : { warmup }),
    ...(warmupDuration === undefined ? {} : { warmupDuration }),
  };
}

function readBackendUtilization(field: Field): BackendUtilization | undefined {
  if (!field.expectObject().isSet) return undefined;
  const names = field.get('metricNamesForComputingUtilization');
  const metricNames = names.strings().filter((name) => name !== '');
  if (metricNames.length > mostMetrics)
    names.invalid(
      `has ${metricNames.length} names; at most ${mostMetrics} are allowed, and only the first ones are used.`,
    );
  return {
    ...present({
      stabilizationPeriod: field.get('weightStabilizationPeriod').duration(),
      expirationPeriod: field.get('weightExpirationPeriod').duration(),
      updatePeriod: field.get('weightUpdatePeriod').duration(),
      errorPenaltyPercent: wideCount(field.get('errorUtilizationPenaltyPercent')),
    }),
    metricNames: metricNames.slice(0, mostMetrics),
  };
}

/** Envoy looks for each in every report. */
const mostMetrics = 100;

function readConsistentHash(field: Field): ConsistentHash | undefined {
  if (!field.expectObject().isSet) return undefined;
  const key = readHashKey(field);
  const ringHash = field.get('ringHash').expectObject();
  const maglev = field.get('maglev').expectObject();
  const old = field.get('minimumRingSize');
  const minimumRingSize = readRingSize(old);
  if (ringHash.isSet && maglev.isSet) maglev.invalid('cannot be combined with ringHash; remove one.');
  const ring = readRing(ringHash, maglev);
  if (ring !== undefined && minimumRingSize !== undefined)
    old.invalid(`is deprecated and cannot be combined with ${ring.kind}; remove it.`);
  return {
    ...(key === undefined ? {} : { key }),
    ...(ring === undefined ? {} : { ring }),
    ...(minimumRingSize === undefined || ring !== undefined ? {} : { minimumRingSize }),
  };
}

function readRing(ringHash: Field, maglev: Field): ConsistentHash['ring'] {
  if (ringHash.isSet) {
    const minimumRingSize = readRingSize(ringHash.get('minimumRingSize'));
    return { kind: 'ringHash', ...(minimumRingSize === undefined ? {} : { minimumRingSize }) };
  }
  if (!maglev.isSet) return undefined;
  const field = maglev.get('tableSize');
  const tableSize = field.integer(1, maxTableSize);
  if (tableSize !== undefined && !isPrime(tableSize)) {
    field.invalid(`must be a prime number such as 65537, not ${tableSize}.`);
    return { kind: 'maglev' };
  }
  return { kind: 'maglev', ...(tableSize === undefined ? {} : { tableSize }) };
}

/** 0 means the same as no size. */
function readRingSize(field: Field): number | undefined {
  return field.integer(0, maxRingSize) || undefined;
}

function readHashKey(field: Field): HashKey | undefined {
  const keys: HashKey[] = [];
  const header = field.get('httpHeaderName');
  const name = header.string();
  if (name !== '') {
    if (/^:?[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) keys.push({ kind: 'header', name });
    else header.invalid(`${quote(name)} is not the name of a header.`);
  }
  const cookie = readCookie(field.get('httpCookie'));
  if (cookie !== undefined) keys.push(cookie);
  if (field.get('useSourceIp').boolean() === true) keys.push({ kind: 'sourceIp' });
  const parameter = field.get('httpQueryParameterName').string();
  if (parameter !== '') keys.push({ kind: 'queryParameter', name: parameter });
  if (keys.length > 1) field.invalid('has more than one key; keep one of them.');
  return keys[0];
}

function readCookie(field: Field): HashKey | undefined {
  if (!field.expectObject().isSet) return undefined;
  const nameField = field.get('name');
  const name = nameField.string();
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    nameField.invalid(name === '' ? 'must name the cookie.' : `${quote(name)} is not the name of a cookie.`);
    return undefined;
  }
  const ttl = field.get('ttl').duration();
  return {
    kind: 'cookie',
    name,
    path: readText(field.get('path')) ?? '',
    ...(ttl === undefined ? {} : { ttl }),
    attributes: readAttributes(field.get('attributes')),
  };
}

function readAttributes(field: Field): { name: string; value: string }[] {
  const found = new Map<string, string>();
  for (const element of field.objects()) {
    const name = readText(element.get('name'));
    const value = readText(element.get('value'));
    if (name === '') element.get('name').invalid('must name the attribute.');
    else if (name !== undefined && found.has(name))
      element.get('name').invalid(`repeats attribute ${quote(name)}; remove one.`);
    else if (name !== undefined && value !== undefined) found.set(name, value);
  }
  return Array.from(found, ([name, value]) => ({ name, value }));
}

/** Text for a header. An invalid one would make Envoy reject everyone else's routes with it. */
function readText(field: Field): string | undefined {
  const text = field.string();
  const problem = problemOfHeaderText(text);
  if (problem === undefined) return text;
  field.invalid(problem);
  return undefined;
}

function readWarmup(field: Field): LoadBalancer['warmup'] {
  if (!field.expectObject().isSet) return undefined;
  const duration = positiveDuration(field.get('duration'));
  if (duration === undefined) {
    if (!field.get('duration').isSet) field.get('duration').invalid('must be set, for example to 30s.');
    return undefined;
  }
  const minimumPercent = share(field.get('minimumPercent'));
  const aggression = field.get('aggression').number();
  if (aggression !== undefined && aggression <= 0) field.get('aggression').invalid('must be greater than 0.');
  return {
    duration,
    ...(minimumPercent === undefined ? {} : { minimumPercent }),
    ...(aggression === undefined || aggression <= 0 ? {} : { aggression }),
  };
}

function readLocality(field: Field): (LocalityLbSetting & { readonly enabled: boolean }) | undefined {
  if (!field.expectObject().isSet) return undefined;
  const distribute = readDistribute(field.get('distribute'));
  const failover = readFailover(field.get('failover'));
  const failoverPriority = field
    .get('failoverPriority')
    .strings()
    .filter((label) => label !== '');
  if (failoverPriority.length > mostPriorities) {
    const found = `has ${failoverPriority.length} labels; at most ${mostPriorities} are allowed, and only the first ones are used.`;
    field.get('failoverPriority').invalid(found);
    failoverPriority.splice(mostPriorities);
  }
  if (distribute.length > 0 && failover.length > 0)
    field.get('failover').invalid('cannot be combined with distribute; remove one.');
  const topology = failoverPriority.find((label) => topologyLabels.includes(label.split('=')[0] ?? ''));
  if (failover.length > 0 && topology !== undefined)
    field.get('failoverPriority').invalid(`names ${topology}, which failover already decides; remove one.`);
  return { enabled: field.get('enabled').boolean() ?? true, distribute, failover, failoverPriority };
}

/** Each is compared for every endpoint, for every place that has proxies with other labels. */
const mostPriorities = 20;

const topologyLabels = ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone', 'topology.istio.io/subzone'];

function readDistribute(field: Field): LocalityLbSetting['distribute'][number][] {
  const found: LocalityLbSetting['distribute'][number][] = [];
  for (const element of field.objects()) {
    const from = element.get('from').string();
    const to: Record<string, number> = {};
    let sum = 0;
    for (const [locality, weightField] of element.get('to').entries()) {
      const weight = weightField.integer(1, 100);
      if (weight === undefined || !isLocality(weightField, locality)) continue;
      to[locality] = weight;
      sum += weight;
    }
    if (!isLocality(element.get('from'), from)) continue;
    if (sum === 100) found.push({ from, to });
    else element.get('to').invalid(`has weights that add up to ${sum}; they must add up to 100.`);
  }
  reportOverlaps(field, found);
  return found;
}

/** The first entry that covers a locality decides, so an overlapping entry partly has no effect. */
function reportOverlaps(field: Field, found: readonly { readonly from: string }[]): void {
  const earlier = new Map<string, string>();
  /** Patterns that would cover an earlier entry. */
  const around = new Map<string, string>();
  for (const { from } of found) {
    const wider = patternsAround(from);
    const rival = [from, ...wider].map((pattern) => earlier.get(pattern)).find((one) => one !== undefined);
    const clash = rival ?? around.get(from);
    if (clash !== undefined) {
      field.invalid(`has two entries for ${quote(from)} (the other is from ${quote(clash)}); keep one.`);
      return;
    }
    earlier.set(from, from);
    for (const pattern of wider) if (!around.has(pattern)) around.set(pattern, from);
  }
}

/** `*`, `a/*` and `a/b/*` for `a/b/c`; also `a/b/*` for `a/b`. */
function patternsAround(locality: string): string[] {
  const parts = locality.split('/').filter((part) => part !== '*');
  return ['*', ...parts.map((_, i) => `${parts.slice(0, i + 1).join('/')}/*`)].filter(
    (pattern) => pattern !== locality,
  );
}

/** `region/zone/subzone`, `region/zone/*`, `region/*` or `*`. */
function isLocality(field: Field, locality: string): boolean {
  const parts = locality.split('/');
  const star = parts.indexOf('*');
  const valid =
    locality !== '' &&
    parts.length <= 3 &&
    parts.every((part) => part !== '' && (part === '*' || !part.includes('*'))) &&
    (star < 0 || star === parts.length - 1);
  if (!valid)
    field.invalid(`${quote(locality)} is not a locality; write region/zone/subzone, region/zone/* or region/*.`);
  return valid;
}

function readFailover(field: Field): { from: string; to: string }[] {
  const found: { from: string; to: string }[] = [];
  for (const element of field.objects()) {
    const from = element.get('from').string();
    const to = element.get('to').string();
    const broken = [from, to].find((region) => region === '' || /[/*]/.test(region));
    if (broken !== undefined) element.invalid(`needs the names of two regions in from and to, not ${quote(broken)}.`);
    else if (from === to) element.invalid(`fails over from ${quote(from)} to itself; name another region.`);
    else found.push({ from, to });
  }
  return found;
}
