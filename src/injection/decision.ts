import { type LabelSelector, matchesLabels } from '../model/label-selector.ts';
import type { Texts } from './pod.ts';

/** Which Pods are injected when nothing about them says so. */
export interface DecisionRules {
  /** Empty: this control plane is the default one. */
  readonly revision: string;
  /** Other names under which it is known: labels may have them in place of the revision. `default`: it is the default. */
  readonly tags: readonly string[];
  readonly policy: 'enabled' | 'disabled';
  /** Namespaces without a label are injected. */
  readonly enableNamespacesByDefault: boolean;
  readonly neverInject: readonly LabelSelector[];
  readonly alwaysInject: readonly LabelSelector[];
}

/** What of a Pod matters. */
export interface Candidate {
  readonly labels: Texts;
  readonly annotations: Texts;
  readonly hostNetwork: boolean;
  readonly os: string;
}

/** `asked`: a reason that whoever wanted a sidecar should hear of. `unselected`: no label asks this control plane. */
export type Decision =
  | { readonly inject: true }
  | { readonly inject: false; readonly reason: string; readonly asked?: true; readonly unselected?: true };

const INJECT = 'sidecar.istio.io/inject';
const REVISION = 'istio.io/rev';
const NAMESPACE = 'istio-injection';

/** What runs there must come up before, and without, any mesh. */
const SYSTEM_NAMESPACES: readonly string[] = ['kube-system', 'kube-public', 'kube-node-lease', 'local-path-storage'];

export function decide(
  { labels, annotations, hostNetwork, os }: Candidate,
  namespace: { readonly name: string; readonly labels: Texts },
  rules: DecisionRules,
): Decision {
  if (SYSTEM_NAMESPACES.includes(namespace.name)) return no(`Pods in ${namespace.name} are never injected`);
  if (labels[INJECT] === 'false') return no(`its label ${INJECT} is "false"`);
  const selected = bySelection(labels, namespace.labels, rules);
  if (!selected.inject) return { ...selected, unselected: true };
  const wish = labels[INJECT] ?? annotations[INJECT];
  if (wish === 'false') return no(`its annotation ${INJECT} is "false"`);
  if (wish !== 'true') {
    const never = rules.neverInject.some((selector) => picks(selector, labels));
    const always = rules.alwaysInject.some((selector) => picks(selector, labels));
    if (never) return no('its labels match a selector of neverInjectSelector');
    if (!always && rules.policy === 'disabled') return no(`the policy is disabled; label it ${INJECT}=true`);
  }
  if (hostNetwork)
    return {
      ...no('it uses the network of its node (hostNetwork), whose traffic a sidecar must not intercept'),
      asked: true,
    };
  if (os === 'windows') return { ...no('a sidecar does not run on Windows'), asked: true };
  return { inject: true };
}

/** A selector without requirements picks nothing: here it would be a mistake. */
function picks(selector: LabelSelector, labels: Texts): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return Object.keys(matchLabels).length + matchExpressions.length > 0 && matchesLabels(selector, labels);
}

/** What the selectors of the webhook decide, for callers that have none. */
function bySelection(pod: Texts, namespace: Texts, rules: DecisionRules): Decision {
  const injection = namespace[NAMESPACE];
  if (injection === 'enabled') return ofRevision('default', rules);
  if (injection !== undefined) return no(`the label ${NAMESPACE} of its namespace is not "enabled"`);
  const revision = namespace[REVISION] ?? pod[REVISION];
  if (revision !== undefined) return ofRevision(revision, rules);
  if (pod[INJECT] === 'true' || rules.enableNamespacesByDefault) return ofRevision('default', rules);
  return no(`neither its namespace nor its labels ask for a sidecar; label the namespace ${NAMESPACE}=enabled`);
}

function ofRevision(name: string, { revision, tags }: DecisionRules): Decision {
  const isOurs = name === revision || tags.includes(name) || (name === 'default' && revision === '');
  return isOurs ? { inject: true } : no(`it belongs to the revision ${name}`);
}

function no(reason: string): { readonly inject: false; readonly reason: string } {
  return { inject: false, reason };
}
