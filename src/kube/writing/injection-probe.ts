import { isObject, type Json, textOf } from '../../api/json.ts';
import type { KubeApi } from '../client/client.ts';
import { collectionPath } from '../client/paths.ts';
import { PROBE } from './webhook-entries.ts';

/** Of the objects that the entry {@link PROBE} selects; its value is the control plane that is meant. */
export const PROBE_LABEL = 'fairlead.dev/probe';

/**
 * What may be created in a dry run: kinds of which the account may create objects anyway. Pods are not among them: the
 * right to create them could not be limited to dry runs before Kubernetes 1.30.
 */
const kinds: Readonly<Record<string, { readonly kind: string; readonly name: string }>> = {
  configmaps: { kind: 'ConfigMap', name: 'istio-ca-root-cert' },
  replicareports: { kind: 'ReplicaReport', name: 'probe' },
};

/**
 * Asks the API server whether it would store the object that an entry of the webhook configuration selects for this, and
 * which is refused by whoever gets the question. Nothing is stored. Rejects with the `ApiError` of the refusal; resolves if
 * nobody has refused, or there is no such entry.
 */
export async function askForProbe(api: KubeApi, webhooks: readonly Json[], signal: AbortSignal): Promise<void> {
  const entry = webhooks.find(({ name }) => name === PROBE);
  const [rule] = Array.isArray(entry?.['rules']) ? entry['rules'].filter(isObject) : [];
  const first = (field: string): string => (Array.isArray(rule?.[field]) ? textOf(rule[field][0]) : '');
  const [group, version, plural] = [first('apiGroups'), first('apiVersions'), first('resources')];
  const known = kinds[plural];
  const namespace = labelIn(entry?.['namespaceSelector'], 'kubernetes.io/metadata.name');
  const label = labelIn(entry?.['objectSelector'], PROBE_LABEL);
  if (known === undefined || namespace === '' || label === '') return;
  const object = {
    apiVersion: group === '' ? version : `${group}/${version}`,
    kind: known.kind,
    metadata: { name: known.name, namespace, labels: { [PROBE_LABEL]: label } },
  };
  await api.post(collectionPath({ group, version, plural }, namespace), object, { query: { dryRun: 'All' }, signal });
}

function labelIn(selector: unknown, name: string): string {
  const labels: Json = isObject(selector) && isObject(selector['matchLabels']) ? selector['matchLabels'] : {};
  return textOf(labels[name]);
}
