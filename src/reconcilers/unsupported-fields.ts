import type { KindName } from '../api/kinds.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';

/** A field of Istio's API that is accepted but has no effect. */
export interface UnsupportedField {
  readonly kind: KindName;
  /**
   * Path of the field. `[]` stands for every list element: `spec.servers[].defaultEndpoint`.
   */
  readonly field: string;
  /** Only this value of the field has no effect. */
  readonly value?: string;
  /** Istio no longer acts on it either. */
  readonly isDeprecated?: true;
  /** A sentence for the owner, if there is more to say. */
  readonly note?: string;
}

/** All such fields, for every kind. The goal is an empty list. */
export const unsupportedFields: readonly UnsupportedField[] = [
  ...inTrafficPolicies('loadBalancer.zoneAwareLbSetting', 'Use localityLbSetting.'),
  ...inTrafficPolicies(
    'outlierDetection.consecutiveErrors',
    'Use consecutive5xxErrors, or consecutiveGatewayErrors for 502, 503 and 504 alone.',
  ).map((field): UnsupportedField => ({ ...field, isDeprecated: true })),
  { kind: 'VirtualService', field: 'spec.http[].fault.delay.exponentialDelay', note: 'Use fixedDelay.' },
  { kind: 'VirtualService', field: 'spec.http[].fault.abort.http2Error', note: 'Use httpStatus or grpcStatus.' },
  { kind: 'VirtualService', field: 'spec.tcp[].match[].sourceSubnet', note: 'Use sourceLabels or sourceNamespace.' },
  ...['spec.ingress[]', 'spec.egress[]'].map((listener): UnsupportedField => ({
    kind: 'Sidecar',
    field: `${listener}.port.targetPort`,
    isDeprecated: true,
  })),
  { kind: 'Gateway', field: 'spec.servers[].port.targetPort', note: 'The Service in front of the router sets it.' },
  ...(
    [
      ['Gateway', 'servers'],
      ['Sidecar', 'ingress'],
    ] as const
  ).map(([kind, list]): UnsupportedField => ({
    kind,
    field: `spec.${list}[].tls.tlsCertificates[].caCertificates`,
    note: 'Set the CAs for client certificates in tls.caCertificates.',
  })),
  { kind: 'Gateway', field: 'spec.servers[].defaultEndpoint' },
];

/** The fields of an object that have no effect, as problems for its owner. */
export function findUnsupported(object: ObjectRef, spec: unknown): Problem[] {
  const problems: Problem[] = [];
  for (const { kind, field, value, isDeprecated, note } of unsupportedFields) {
    if (kind !== object.kind) continue;
    const paths: string[] = [];
    findSet(spec, stepsOf(field), [], value, paths);
    for (const path of paths) {
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

/** A DestinationRule has policies in four places. */
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

/** Without `spec`; `[]` is its own step. */
function stepsOf(field: string): readonly string[] {
  return (field.match(/\[\]|[^.[]+/g) ?? []).slice(1);
}

/**
 * Finds the paths of fields that match the steps and are set. Objects have thousands of routes and almost none of these
 * fields, so a path becomes text only if there is something at its end.
 *
 * @param way from the spec to the current value, one entry per step: member names and indexes.
 */
function findSet(
  from: unknown,
  steps: readonly string[],
  way: (string | number)[],
  value: string | undefined,
  found: string[],
): void {
  if (found.length === maxProblems) return;
  const step = steps[way.length];
  if (step === undefined) {
    if (value === undefined ? isSet(from) : from === value) found.push(printPath(way));
    return;
  }
  if (typeof from !== 'object' || from === null) return;
  const visit = (member: unknown, name: string | number): void => {
    way.push(name);
    findSet(member, steps, way, value, found);
    way.pop();
  };
  if (step === '[]') {
    if (Array.isArray(from)) for (const [index, element] of from.entries()) visit(element, index);
  } else if (Object.hasOwn(from, step)) visit((from as Readonly<Record<string, unknown>>)[step], step);
}

function printPath(way: readonly (string | number)[]): string {
  let path = 'spec';
  for (const name of way) path += typeof name === 'number' ? `[${name}]` : `.${name}`;
  return path;
}

/** Whatever protobuf cannot tell from absence counts as absent. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false && value !== 0 && !isEmptyList(value);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
