import type { AuthorizationPolicy } from '../../api/gen/authorization-policy.gen.ts';
import type { Problem } from '../../api/problem.ts';
import {
  type Attribute,
  type AuthorizationAction,
  type AuthorizationPolicyModel,
  type AuthorizationRule,
  type Clause,
  type Condition,
  isOperation,
} from '../../model/authorization.ts';
import type { Field, Findings } from '../field.ts';
import { type ValueKind, whenAttribute } from './attributes.ts';
import { remarkOnRules } from './authorization-remarks.ts';
import { readPolicy, readTarget } from './policy-object.ts';
import { readValues } from './rule-values.ts';

export interface ReconciledAuthorizationPolicy {
  readonly model: AuthorizationPolicyModel;
  readonly problems: readonly Problem[];
}

/** More rules than the API server takes. */
const mostRules = 512;
/** Every connection manager and every TCP port of a workload has a copy of all values. */
const mostValues = 10_000;

/**
 * An object with errors stays in force: what cannot be understood allows nothing, and denies all the more. Its owner is
 * told.
 */
export function reconcileAuthorizationPolicy(
  object: AuthorizationPolicy,
  source: string,
): ReconciledAuthorizationPolicy {
  const { base, spec, findings, isAstray } = readPolicy(object, source, readTarget);
  const action = readAction(spec);
  const provider = spec.get('provider').expectObject();
  const dryRun = readDryRun(object.metadata.annotations?.['istio.io/dry-run'], findings);
  const found = readRules(spec.get('rules'), { namespace: base.namespace, action: action ?? 'DENY' });
  remarkOnRules(found, spec.get('rules'), action ?? 'DENY');
  const name = provider.get('name').string();
  if (action !== undefined && action !== 'CUSTOM' && provider.isSet) provider.invalid('is only for action CUSTOM.');
  if (action === 'CUSTOM' && name === '')
    spec.get('provider').get('name').invalid('is missing: name an extension provider of the mesh config.');
  if (found.length === 0 && action !== undefined && action !== 'ALLOW')
    spec.get('rules').invalid(`is empty, so that nothing ever matches; with ${action}, write at least one rule.`);
  // Without its action, what it matches may be what is denied, or the only thing that is not.
  const rules = action === undefined ? [unreadable(0)] : isAstray ? found.map(broken) : found;
  return {
    model: { ...base, action: action ?? 'DENY', provider: action === 'CUSTOM' ? name : '', dryRun, rules },
    problems: findings.problems,
  };
}

/** It matches everything, unless it is to allow something. */
const unreadable = (index: number): AuthorizationRule => ({ index, from: [], to: [], when: [], broken: true });

/** It is not known where the rule is meant: what it allows could be what another policy refuses. */
const broken = (rule: AuthorizationRule): AuthorizationRule => ({ ...rule, broken: true });

/** Undefined if it cannot be read. */
function readAction(spec: Field): AuthorizationAction | undefined {
  const field = spec.get('action');
  const before = field.findings.invalidValues;
  const action = field.oneOf('ALLOW', 'DENY', 'AUDIT', 'CUSTOM');
  return field.findings.invalidValues > before ? undefined : action;
}

/** As Go's ParseBool. Anything else is false: the policy is enforced. */
function readDryRun(text: string | undefined, findings: Findings): boolean {
  if (text === undefined) return false;
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text)) return true;
  if (!['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text))
    findings.report(
      'metadata.annotations["istio.io/dry-run"]',
      'Ineffective',
      'must be "true" or "false"; the policy is enforced.',
    );
  return false;
}

interface RuleContext {
  readonly namespace: string;
  readonly action: AuthorizationAction;
}

function readRules(field: Field, context: RuleContext): readonly AuthorizationRule[] {
  if (!field.isSet) return [];
  const { value } = field;
  if (!Array.isArray(value)) {
    field.invalid('must be a list.');
    return [unreadable(0)];
  }
  if (value.length > mostRules) {
    field.invalid(`has ${value.length} rules; at most ${mostRules} are allowed.`);
    return [unreadable(0)];
  }
  const size: Size = { clauses: 0, values: 0 };
  const rules = field.list().map((rule, index): AuthorizationRule => {
    if (typeof rule.value !== 'object' || rule.value === null || Array.isArray(rule.value)) {
      rule.invalid('must be an object.');
      return unreadable(index);
    }
    return new RuleReader(context, size).read(rule, index);
  });
  const most = Math.max(size.values, size.clauses);
  if (most <= mostValues) return rules;
  field.invalid(
    `has ${most} values, of which those in "when" count once for each element of "from" or "to"; at most ${mostValues} are allowed. Use fewer, wider ones.`,
  );
  return [unreadable(0)];
}

/** How much there is in all rules of an object. Beyond the limit, the rest is only counted: reading takes time. */
interface Size {
  clauses: number;
  values: number;
}

/** The fields of a source or an operation, each with its attribute. The order is that in Envoy's configuration. */
const sourceFields: readonly [string, string, Attribute, ValueKind][] = [
  ['principals', 'notPrincipals', { kind: 'principal' }, 'principal'],
  ['requestPrincipals', 'notRequestPrincipals', { kind: 'requestPrincipal' }, 'text'],
  ['serviceAccounts', 'notServiceAccounts', { kind: 'serviceAccount' }, 'serviceAccount'],
  ['trustDomains', 'notTrustDomains', { kind: 'trustDomain' }, 'trustDomain'],
  ['namespaces', 'notNamespaces', { kind: 'namespace' }, 'text'],
  ['remoteIpBlocks', 'notRemoteIpBlocks', { kind: 'remoteIp' }, 'addresses'],
  ['ipBlocks', 'notIpBlocks', { kind: 'sourceIp' }, 'addresses'],
];

const operationFields: readonly [string, string, Attribute, ValueKind][] = [
  ['hosts', 'notHosts', { kind: 'host' }, 'text'],
  ['methods', 'notMethods', { kind: 'method' }, 'text'],
  ['paths', 'notPaths', { kind: 'path' }, 'path'],
  ['ports', 'notPorts', { kind: 'port' }, 'port'],
];

/** Istio's admission refuses identities under CUSTOM; those from tokens are not known before authentication. */
const notForCustom = new Set<Attribute['kind']>(['principal', 'namespace', 'serviceAccount', 'trustDomain']);
const neverForCustom = new Set<Attribute['kind']>(['requestPrincipal', 'claim']);

class RuleReader {
  private broken = false;
  private readonly context: RuleContext;
  private readonly size: Size;

  constructor(context: RuleContext, size: Size) {
    this.context = context;
    this.size = size;
  }

  read(rule: Field, index: number): AuthorizationRule {
    const from = this.clauses(rule.get('from'), 'source', sourceFields);
    const to = this.clauses(rule.get('to'), 'operation', operationFields);
    const when = this.conditions(rule.get('when'));
    for (const { attribute, values, notValues } of when) {
      const copies = Math.max(1, (isOperation(attribute) ? to : from).length);
      this.isTooLarge('values', (copies - 1) * (values.length + notValues.length));
    }
    return { index, from, to, when, broken: this.broken };
  }

  private invalid(field: Field, message: string): void {
    this.broken = true;
    field.invalid(message);
  }

  private isTooLarge(what: keyof Size, more: number): boolean {
    this.size[what] += more;
    return this.size[what] > mostValues;
  }

  private clauses(field: Field, member: string, fields: typeof sourceFields): readonly Clause[] {
    if (!field.isSet) return [];
    if (!Array.isArray(field.value) || field.value.length === 0) {
      this.invalid(field, 'must be a list with at least one element; leave the field out if anything matches.');
      return [];
    }
    if (this.isTooLarge('clauses', field.value.length)) return [];
    return field.list().map((element) => {
      const content = element.get(member);
      if (typeof content.value !== 'object' || content.value === null || Object.keys(content.value).length === 0) {
        this.invalid(content, 'must have at least one field.');
        return [];
      }
      this.checkAccounts(content);
      return fields.flatMap(([name, notName, attribute, kind]) =>
        this.condition(attribute, kind, content.get(name), content.get(notName)),
      );
    });
  }

  private checkAccounts(source: Field): void {
    const accounts = ['serviceAccounts', 'notServiceAccounts'].filter((name) => source.get(name).isSet);
    const others = ['principals', 'notPrincipals', 'namespaces', 'notNamespaces'];
    if (accounts.length > 0 && others.some((name) => source.get(name).isSet))
      this.invalid(source.get(accounts[0]!), 'cannot be combined with principals or namespaces.');
  }

  private conditions(field: Field): Clause {
    if (!field.isSet) return [];
    if (!Array.isArray(field.value)) {
      this.invalid(field, 'must be a list.');
      return [];
    }
    if (this.isTooLarge('clauses', field.value.length)) return [];
    return field.list().flatMap((element) => {
      const key = element.get('key');
      const [values, notValues] = [element.get('values'), element.get('notValues')];
      const found = whenAttribute(key.string());
      if ('problem' in found) {
        this.invalid(key, found.problem);
        return [];
      }
      if (!values.isSet && !notValues.isSet) {
        this.invalid(element, 'needs values or notValues.');
        return [];
      }
      return this.condition(found.attribute, found.values, values, notValues);
    });
  }

  private condition(attribute: Attribute, kind: ValueKind, positive: Field, negative: Field): readonly Condition[] {
    if (!positive.isSet && !negative.isSet) return [];
    if (this.context.action === 'CUSTOM') {
      const field = positive.isSet ? positive : negative;
      if (neverForCustom.has(attribute.kind)) {
        this.invalid(field, 'cannot be used with action CUSTOM, which comes before authentication; it is left out.');
        return [];
      }
      if (notForCustom.has(attribute.kind))
        field.invalid("is not allowed by Istio's API with action CUSTOM; Fairlead compares it all the same.");
    }
    if (this.isTooLarge('values', lengthOf(positive) + lengthOf(negative))) return [];
    const [values, notValues] = [positive, negative].map((field) => readValues(field, kind, this.context.namespace));
    // A condition of which a part is unreadable is left out, so that the rule matches more.
    if (!values!.ok || !notValues!.ok) {
      this.broken = true;
      return [];
    }
    if (values!.values.length + notValues!.values.length === 0) return [];
    return [{ attribute, values: values!.values, notValues: notValues!.values }];
  }
}

function lengthOf({ value }: Field): number {
  return Array.isArray(value) ? value.length : 0;
}
