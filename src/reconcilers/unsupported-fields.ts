import type { KindName } from '../api/kinds.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from './field.ts';

/** A field of Istio's API that is accepted, but has no effect. */
export interface UnsupportedField {
  readonly kind: KindName;
  /**
   * Path of the field. `[]` stands for every element of a list, `{x*}` for the members of a map whose names begin with x,
   * in whatever case: `spec.servers[].defaultEndpoint`.
   */
  readonly field: string;
  /** Only this value of the field has no effect. */
  readonly value?: string;
  /** Istio does not act on it either, any more. */
  readonly isDeprecated?: true;
  /** A sentence for the owner, where there is more to say. */
  readonly note?: string;
}

/** All of them, for every kind. An empty list is the goal. */
export const unsupportedFields: readonly UnsupportedField[] = [
  ...inTrafficPolicies('loadBalancer.zoneAwareLbSetting', 'Use localityLbSetting.'),
  ...inTrafficPolicies(
    'outlierDetection.consecutiveErrors',
    'Use consecutive5xxErrors, or consecutiveGatewayErrors for 502, 503 and 504 alone.',
  ).map((field): UnsupportedField => ({ ...field, isDeprecated: true })),
  ...inTrafficPolicies(
    'tls.credentialName',
    'The proxy is told the name of the Secret, but is not sent the Secret; mount the files and name their paths.',
  ),
  ...['headers', 'withoutHeaders'].map((matches): UnsupportedField => ({
    kind: 'VirtualService',
    field: `spec.http[].match[].${matches}{@request.auth.claims*}`,
    note: 'Tokens are not verified, so there are no claims, and the match holds for no request.',
  })),
  { kind: 'VirtualService', field: 'spec.http[].fault.delay.exponentialDelay', note: 'Use fixedDelay.' },
  { kind: 'VirtualService', field: 'spec.http[].fault.abort.http2Error', note: 'Use httpStatus or grpcStatus.' },
  { kind: 'VirtualService', field: 'spec.tcp[].match[].sourceSubnet', note: 'Use sourceLabels or sourceNamespace.' },
  {
    kind: 'Sidecar',
    field: 'spec.ingress[].tls',
    note: 'Mutual TLS of the mesh is used where the proxy has certificates.',
  },
  ...['spec.ingress[]', 'spec.egress[]'].map((listener): UnsupportedField => ({
    kind: 'Sidecar',
    field: `${listener}.port.targetPort`,
    isDeprecated: true,
  })),
  { kind: 'Gateway', field: 'spec.servers[].port.targetPort', note: 'The Service in front of the router says it.' },
  {
    kind: 'Gateway',
    field: 'spec.servers[].tls.tlsCertificates[].caCertificates',
    note: 'Name the authorities of client certificates in tls.caCertificates.',
  },
  { kind: 'Gateway', field: 'spec.servers[].defaultEndpoint' },
  { kind: 'Gateway', field: 'spec.servers[].tls.mode', value: 'AUTO_PASSTHROUGH', note: 'The server is left out.' },
  ...['credentialName', 'credentialNames', 'caCertCredentialName'].map((name): UnsupportedField => ({
    kind: 'Gateway',
    field: `spec.servers[].tls.${name}`,
    note: 'The router is told the name of the Secret, but is not sent the Secret; mount the files and name their paths.',
  })),
];

/** The fields of an object that have no effect, as problems for its owner. */
export function findUnsupported(object: ObjectRef, spec: unknown): Problem[] {
  const problems: Problem[] = [];
  for (const { kind, field, value, isDeprecated, note } of unsupportedFields) {
    if (kind !== object.kind) continue;
    for (const path of findSet(spec, stepsOf(field), 'spec', value)) {
      if (problems.length === maxProblems) return problems;
      const what = value === undefined ? 'The field is' : `The value ${value} is`;
      const why = isDeprecated
        ? 'deprecated, and neither Istio nor Fairlead acts on it'
        : 'not supported yet and has no effect';
      const message = `${what} ${why}.${note === undefined ? '' : ` ${note}`}`;
      problems.push({ object, field: path, reason: 'UnsupportedField', message });
    }
  }
  return problems;
}

const maxProblems = 100;

/** A DestinationRule has its policies in four places. */
function inTrafficPolicies(field: string, note?: string): UnsupportedField[] {
  const policies = ['spec.trafficPolicy', 'spec.subsets[].trafficPolicy'];
  return policies
    .flatMap((policy) => [policy, `${policy}.portLevelSettings[]`])
    .map((policy) => ({
      kind: 'DestinationRule',
      field: `${policy}.${field}`,
      ...(note === undefined ? {} : { note }),
    }));
}

/** Without `spec`; a name in braces may have dots. */
function stepsOf(field: string): readonly string[] {
  return (field.match(/\{[^}]*\}|[^.{]+/g) ?? []).slice(1);
}

/** Paths of the fields that match the steps and are set. */
function* findSet(
  from: unknown,
  steps: readonly string[],
  path: string,
  value: string | undefined,
): Generator<string, void> {
  const [step, ...rest] = steps;
  if (step === undefined) {
    if (value === undefined ? isSet(from) : from === value) yield path;
    return;
  }
  if (typeof from !== 'object' || from === null) return;
  if (step.startsWith('{')) {
    const beginning = step.slice(1, -2);
    for (const [name, member] of Object.entries(from))
      if (name.toLowerCase().startsWith(beginning)) yield* findSet(member, rest, `${path}[${quote(name)}]`, value);
    return;
  }
  const inList = step.endsWith('[]');
  const name = inList ? step.slice(0, -2) : step;
  if (!Object.hasOwn(from, name)) return;
  const member = (from as Readonly<Record<string, unknown>>)[name];
  if (!inList) {
    yield* findSet(member, rest, `${path}.${name}`, value);
    return;
  }
  if (!Array.isArray(member)) return;
  for (const [index, element] of member.entries()) yield* findSet(element, rest, `${path}.${name}[${index}]`, value);
}

/** What protobuf cannot tell from absence counts as absent. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false && value !== 0 && !isEmptyList(value);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
