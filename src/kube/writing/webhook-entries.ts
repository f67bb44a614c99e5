import { isObject, type Json } from '../../api/json.ts';

/** What the API server asks about, as in a webhook configuration. */
export interface WebhookRule {
  readonly operations: readonly string[];
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly scope: 'Namespaced';
}

/**
 * The entry by which a control plane finds out whether the API server reaches it. What it is asked about is not ours to
 * change.
 */
export const PROBE = 'probe.fairlead.dev';

const isProbe = ({ name }: Json): boolean => name === PROBE;

/**
 * Entries that ask for what we decide about, or undefined if these do. One that asks for nothing yet is opened at first:
 * nothing may stop because it cannot be answered. What is too much stays, for a replica of another version may want it.
 */
export function askingFor(webhooks: readonly Json[], rules: readonly WebhookRule[]): readonly Json[] | undefined {
  const wanted = questionsOf(rules);
  const isRight = (webhook: Json): boolean => {
    const found = questionsOf(rulesOf(webhook));
    return isProbe(webhook) || [...wanted].every((question) => found.has(question));
  };
  if (webhooks.every(isRight)) return undefined;
  return webhooks.map((webhook): Json => {
    if (isRight(webhook)) return webhook;
    return { ...webhook, rules, ...(rulesOf(webhook).length === 0 && { failurePolicy: 'Ignore' }) };
  });
}

/** Whether the API server refuses what none of our replicas can answer. */
export function failsClosed(webhooks: readonly Json[]): boolean {
  return webhooks.every((webhook) => isProbe(webhook) || webhook['failurePolicy'] === 'Fail');
}

export function failsOpen(webhooks: readonly Json[]): boolean {
  return webhooks.every((webhook) => isProbe(webhook) || webhook['failurePolicy'] === 'Ignore');
}

export function failing(webhooks: readonly Json[], failurePolicy: 'Fail' | 'Ignore'): readonly Json[] {
  return webhooks.map((webhook): Json => (isProbe(webhook) ? webhook : { ...webhook, failurePolicy }));
}

function rulesOf({ rules }: Json): readonly Json[] {
  return Array.isArray(rules) ? rules.filter(isObject) : [];
}

function questionsOf(rules: readonly (WebhookRule | Json)[]): ReadonlySet<string> {
  const questions = new Set<string>();
  for (const { apiGroups, resources, operations } of rules)
    for (const group of textsIn(apiGroups))
      for (const resource of textsIn(resources))
        for (const operation of textsIn(operations)) questions.add(`${operation} ${group}/${resource}`);
  return questions;
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
