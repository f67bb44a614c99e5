import { isEnvironmentName } from '../../api/environment-name.ts';
import { type KubernetesObject, objectKey, refOf } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { choosesCode, codeNotChosen, isForProxyConfigs } from '../../api/proxy-variables.ts';
import { compareAge, printWinner } from '../../model/age.ts';
import type { PolicyTarget } from '../../model/policy-target.ts';
import type { ProxyConfigModel } from '../../model/proxy-config.ts';
import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';

export interface ReconciledProxyConfig {
  /** The model; none if the object is not valid, or is for no Pod. */
  readonly models: readonly ProxyConfigModel[];
  readonly problems: readonly Problem[];
}

const MOST_THREADS = 2 ** 31 - 1;

export function reconcileProxyConfig(
  object: KubernetesObject & { readonly spec?: unknown },
  source: string,
): ReconciledProxyConfig {
  const { name, namespace = '', creationTimestamp = '' } = object.metadata;
  const findings = new Findings(refOf(source, object));
  const spec = new Field(object.spec, 'spec', findings).expectObject();
  const target = readTarget(spec.get('selector'));
  const concurrency = spec.get('concurrency').integer(0, MOST_THREADS);
  const environmentVariables = readVariables(spec.get('environmentVariables'));
  const imageType = spec.get('image').expectObject().get('imageType').string();
  const model: ProxyConfigModel = {
    ...{ key: objectKey(source, namespace, name), ref: findings.object, name, namespace, createdAt: creationTimestamp },
    target: target ?? { kind: 'namespace' },
    ...(concurrency !== undefined && { concurrency }),
    environmentVariables,
    ...(imageType !== '' && { imageType }),
  };
  return { models: findings.invalid || target === undefined ? [] : [model], problems: findings.problems };
}

/** Undefined: no Pod. */
function readTarget(selector: Field): PolicyTarget | undefined {
  if (!selector.isSet) return { kind: 'namespace' };
  const matched = selector.expectObject().get('matchLabels');
  const entries = matched.entries();
  for (const [key, value] of entries)
    if (key === '' || key.includes('*') || value.string().includes('*') || !value.isSet)
      value.invalid('needs a name and a value without *.');
  if (entries.length > 0) return { kind: 'labels', labels: matched.stringMap() };
  // As in Istio: only an object without a selector is for the whole namespace.
  selector.findings.report(
    selector.path,
    'Ineffective',
    'has no labels and selects no Pod; add matchLabels, or remove the selector to have it for all Pods.',
  );
  return undefined;
}

function readVariables(field: Field): Readonly<Record<string, string>> {
  const entries = field.entries();
  for (const [name, value] of entries)
    if (!isEnvironmentName(name)) value.invalid(`${quote(name)} is not the name of an environment variable.`);
  const variables = field.stringMap();
  for (const [name, value] of entries)
    if (!isForProxyConfigs(name)) value.findings.report(value.path, 'Ineffective', notSet(name));
  return Object.fromEntries(Object.entries(variables).filter(([name]) => isForProxyConfigs(name)));
}

function notSet(name: string): string {
  if (choosesCode(name)) return codeNotChosen;
  return (
    'is not set: a ProxyConfig may set ISTIO_META_... and what the user guide lists; ' +
    'write it into proxyMetadata of the mesh config, or of the annotation proxy.istio.io/config of Pods.'
  );
}

/** For messages: of those with the same selector in a namespace, all but the oldest never apply. */
export function shadowedProxyConfigs(same: readonly ProxyConfigModel[]): readonly Problem[] {
  const [winner, ...losers] = [...same].sort(compareAge);
  if (winner === undefined) return [];
  return losers.map((loser) => ({
    object: loser.ref,
    field: loser.target.kind === 'labels' ? 'spec.selector' : 'spec',
    reason: 'Conflicted',
    message: `Of the ProxyConfigs in this namespace ${loser.target.kind === 'labels' ? 'with this selector' : 'without a selector'}, ${printWinner(`ProxyConfig ${quote(winner.name)}`, winner, loser)} is used; remove one of them.`,
  }));
}
