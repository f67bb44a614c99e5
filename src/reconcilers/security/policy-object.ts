import { type KubernetesObject, objectKey, refOf } from '../../api/object.ts';
import { withArticle } from '../../api/article.ts';
import { quote } from '../../api/quote.ts';
import type { PolicyObject, PolicyTarget } from '../../model/policy-target.ts';
import { Field, Findings } from '../field.ts';

/** An object of `security.istio.io`, before its own fields are read. */
export interface PolicyReading {
  readonly base: PolicyObject;
  readonly spec: Field;
  readonly findings: Findings;
  /** Which workloads it is for cannot be read; then it is for all of the namespace. */
  readonly isAstray: boolean;
}

export function readPolicy(
  object: KubernetesObject & { readonly spec?: unknown },
  source: string,
  readTarget: (spec: Field) => PolicyTarget,
): PolicyReading {
  const { name, namespace = '', creationTimestamp = '' } = object.metadata;
  const ref = refOf(source, object);
  const findings = new Findings(ref);
  const spec = new Field(object.spec, 'spec', findings).expectObject();
  const key = objectKey(source, namespace, name);
  const target = readTarget(spec);
  return {
    base: { key, ref, name, namespace, createdAt: creationTimestamp, target },
    spec,
    findings,
    isAstray: findings.invalid,
  };
}

/** A selector that cannot be read selects everything: a policy must not fall away because of a typo. */
export function readSelector(spec: Field): PolicyTarget {
  const selector = spec.get('selector').expectObject();
  const matched = selector.get('matchLabels');
  const entries = matched.entries();
  let readable = (!selector.isSet || isObjectLike(selector)) && (!matched.isSet || isObjectLike(matched));
  for (const [key, value] of entries) {
    if (key !== '' && !key.includes('*') && typeof value.value === 'string' && !value.value.includes('*')) continue;
    value.invalid('needs a name and a value without *; until this is mended, the policy is for all workloads.');
    readable = false;
  }
  if (!readable || entries.length === 0) return { kind: 'namespace' };
  return { kind: 'labels', labels: Object.fromEntries(entries.map(([key, value]) => [key, value.string()])) };
}

function isObjectLike({ value }: Field): boolean {
  return typeof value === 'object' && !Array.isArray(value);
}

/** `selector`, `targetRef` or `targetRefs`. */
export function readTarget(spec: Field): PolicyTarget {
  const [one, many] = [spec.get('targetRef'), spec.get('targetRefs')];
  const set = [spec.get('selector'), one, many].filter(({ isSet }) => isSet);
  if (set.length > 1) {
    spec.invalid('may have only one of selector, targetRef and targetRefs; all workloads are meant until then.');
    return { kind: 'namespace' };
  }
  const { findings } = spec;
  const references = many.isSet ? many.objects() : one.isSet ? [one.expectObject()] : [];
  if (references.length === 0) {
    const all = { kind: 'namespace' } as const;
    return findings.invalid ? all : readSelector(spec);
  }
  const names = references.flatMap((reference) => {
    const [group, kind, name] = ['group', 'kind', 'name'].map((member) => reference.get(member).string());
    if (reference.get('namespace').string() !== '')
      reference.get('namespace').invalid('must be empty: the object is in the namespace of the policy.');
    if (name === '') reference.get('name').invalid('is missing.');
    else if (group === 'gateway.networking.k8s.io' && kind === 'Gateway') return [name!];
    else if (isOfWaypoints(group!, kind!))
      findings.report(
        reference.path,
        'Ineffective',
        `is ${withArticle(kind!)}, which only waypoints act on, and there are none. Use a selector for the workloads instead.`,
      );
    else
      reference.invalid(
        `is ${withArticle(quote(kind!))} of group ${quote(group!)}; a policy can be for a Gateway of gateway.networking.k8s.io.`,
      );
    return [];
  });
  // A policy must not fall away because of a typo.
  return findings.invalid ? { kind: 'namespace' } : { kind: 'gateways', names };
}

function isOfWaypoints(group: string, kind: string): boolean {
  return (
    (kind === 'Service' && (group === '' || group === 'core')) ||
    (kind === 'ServiceEntry' && group === 'networking.istio.io') ||
    (kind === 'GatewayClass' && group === 'gateway.networking.k8s.io')
  );
}
