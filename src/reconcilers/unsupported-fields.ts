import type { KindName } from '../api/kinds.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { printPath } from '../api/schema-path.ts';
import type { UnsupportedField } from './unsupported-field.ts';
import { unsupportedMeshFields } from './unsupported-mesh-fields.ts';

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
  ...unsupportedMeshFields,
];

/** The fields of an object that have no effect, as problems for its owner. */
export function findUnsupported(object: ObjectRef, spec: unknown): Problem[] {
  return unsupportedIn(spec, object.kind as KindName).map((found) => ({ object, ...found }));
}

/** Paths begin with `spec`, or, in texts of a ConfigMap, within the text. */
export function unsupportedIn(value: unknown, kind: UnsupportedField['kind']): Omit<Problem, 'object'>[] {
  const problems: Omit<Problem, 'object'>[] = [];
  const root = kind === 'MeshConfig' || kind === 'MeshNetworks' ? [] : ['spec'];
  for (const { kind: of, field, value: only, isDeprecated, note } of unsupportedFields) {
    if (of !== kind) continue;
    const paths: string[] = [];
    findSet(value, stepsOf(field), [], { value: only, root }, paths);
    for (const path of paths) {
      if (problems.length === maxProblems) return problems;
      const what = only === undefined ? 'The field is' : `The value ${only} is`;
      const why = isDeprecated
        ? 'deprecated, and neither Istio nor Fairlead acts on it'
        : 'not supported yet and has no effect';
      const message = `${what} ${why}.${note === undefined ? '' : ` ${note}`}`;
      problems.push({ field: path, reason: 'UnsupportedField', message });
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

/** Without the first step, which is the value itself; `[]` and `{}` are steps of their own. */
function stepsOf(field: string): readonly string[] {
  return (field.match(/\[\]|\{\}|[^.[{]+/g) ?? []).slice(1);
}

/**
 * Finds the paths of fields that match the steps and are set. Objects have thousands of routes and almost none of these
 * fields, so a path becomes text only if there is something at its end.
 *
 * @param way from the root to the current value, one entry per step: member names, keys of maps, and indexes.
 */
function findSet(
  from: unknown,
  steps: readonly string[],
  way: (string | number)[],
  wanted: { readonly value: string | undefined; readonly root: readonly string[] },
  found: string[],
): void {
  if (found.length === maxProblems) return;
  const step = steps[way.length];
  if (step === undefined) {
    const { value, root } = wanted;
    if (value === undefined ? isSet(from) : from === value) found.push(printPath([...root, ...way]));
    return;
  }
  if (typeof from !== 'object' || from === null) return;
  const visit = (member: unknown, name: string | number): void => {
    way.push(name);
    findSet(member, steps, way, wanted, found);
    way.pop();
  };
  if (step === '[]') {
    if (Array.isArray(from)) for (const [index, element] of from.entries()) visit(element, index);
  } else if (step === '{}') for (const [key, entry] of Object.entries(from)) visit(entry, key);
  else if (Object.hasOwn(from, step)) visit((from as Readonly<Record<string, unknown>>)[step], step);
}

/** Whatever protobuf cannot tell from absence counts as absent. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false && value !== 0 && !isEmptyList(value);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
