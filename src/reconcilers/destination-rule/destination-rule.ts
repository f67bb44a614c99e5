import type { DestinationRule } from '../../api/gen/destination-rule.gen.ts';
import { refOf } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { mostSubsets, ruleId } from '../../model/destination-rule.ts';
import { isHostName, resolveShortName } from '../../model/host.ts';
import type { Labels } from '../../model/labels.ts';
import type { DestinationRuleModel, Subset } from '../../model/traffic-policy.ts';
import { readTrafficPolicy } from './policy.ts';
import { checkExports, settleExportTo } from '../export-to.ts';
import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';
import { findUnsupported } from '../unsupported-fields.ts';

export interface DestinationRuleContext {
  readonly source: string;
  readonly domainSuffix: string;
  readonly defaultExportTo: readonly string[];
}

export interface ReconciledRule {
  /** None if the host cannot be read; otherwise one. */
  readonly rules: readonly DestinationRuleModel[];
  readonly problems: readonly Problem[];
}

/** What a DestinationRule says. A broken part is reported and left out; the other parts apply. */
export function reconcileDestinationRule(object: DestinationRule, context: DestinationRuleContext): ReconciledRule {
  const ref = refOf(context.source, object);
  const { name, namespace = '', creationTimestamp = '' } = object.metadata;
  const findings = new Findings(ref);
  const spec = new Field(object.spec, 'spec', findings).expectObject();

  const host = readHost(spec.get('host'), namespace, context.domainSuffix);
  const workloadSelector = readSelector(spec.get('workloadSelector'));
  const exportTo = readExportTo(spec.get('exportTo'), namespace, workloadSelector !== undefined, context);
  const policy = readTrafficPolicy(spec.get('trafficPolicy'), namespace);
  const rule = {
    host,
    namespace,
    name,
    createdAt: creationTimestamp,
    exportTo,
    ...(workloadSelector === undefined ? {} : { workloadSelector }),
    ...policy,
    subsets: readSubsets(spec.get('subsets'), host, namespace),
    origins: [ref],
  };
  return {
    rules: host === undefined ? [] : [{ ...rule, host, id: ruleId({ ...rule, host }) }],
    problems: [...findings.problems, ...findUnsupported(ref, object.spec)],
  };
}

function readHost(field: Field, namespace: string, domainSuffix: string): string | undefined {
  const host = resolveShortName(field.string(), namespace, domainSuffix);
  if (isHostName(host)) return host;
  field.invalid(
    field.isSet
      ? `${quote(host)} is not a host name; use the name of a Service, a DNS name, or one that starts with "*.".`
      : 'must name the host that the rule is for.',
  );
  return undefined;
}

function readSelector(field: Field): Labels | undefined {
  if (!field.expectObject().isSet) return undefined;
  const labels = field.get('matchLabels').stringMap();
  for (const [key, value] of Object.entries(labels))
    if (key === '' || key.includes('*') || value.includes('*'))
      field
        .get('matchLabels')
        .invalid(`${quote(`${key}=${value}`)} is not a label; name it exactly, without wildcards.`);
  return labels;
}

/** A rule that selects workloads applies only in its own namespace. */
function readExportTo(
  field: Field,
  namespace: string,
  selective: boolean,
  context: DestinationRuleContext,
): readonly string[] {
  const given = field.list();
  const values = given.map((element) => element.string());
  const valid = values.filter((value, index) => {
    const known = value === '.' || value === '*' || isDnsLabel(value);
    if (!known) given[index]?.invalid(`${quote(value)} is neither ".", "*" nor the name of a namespace.`);
    return known;
  });
  checkExports(field, valid, 1);
  if (valid.includes('*') && valid.length > 1) field.invalid('names "*" and others; keep one or the other.');
  if (new Set(valid.map((value) => (value === '.' ? namespace : value))).size < valid.length)
    field.invalid('names a namespace twice; remove one.');
  if (selective) {
    if (valid.some((value) => value !== '.' && value !== namespace))
      field.invalid('cannot name other namespaces with workloadSelector; the rule applies only in its own namespace.');
    return [namespace];
  }
  return settleExportTo(given.length > 0 && valid.length === 0 ? ['.'] : valid, namespace, context.defaultExportTo);
}

function readSubsets(field: Field, host: string | undefined, namespace: string): readonly Subset[] {
  const found = new Map<string, Subset>();
  const elements = field.objects();
  const most = mostSubsets(host ?? '');
  const whose = most < mostSubsets('') ? ' for a wildcard host' : '';
  if (elements.length > most)
    field.invalid(
      `has ${elements.length} subsets; at most ${most} are allowed${whose}, and only the first ones are used. Remove those that no route uses.`,
    );
  for (const element of elements.slice(0, most)) {
    const name = element.get('name').string();
    const subset = {
      name,
      labels: element.get('labels').stringMap(),
      ...readTrafficPolicy(element.get('trafficPolicy'), namespace),
    };
    if (!isDnsLabel(name))
      element.get('name').invalid(`${quote(name)} is not a valid name for a subset; use letters, digits and "-".`);
    else if (found.has(name)) element.get('name').invalid(`repeats subset ${quote(name)}; the first one is used.`);
    else found.set(name, subset);
  }
  return [...found.values()];
}

function isDnsLabel(name: string): boolean {
  return /^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/.test(name);
}
