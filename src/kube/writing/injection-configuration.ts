import { askForProbe } from './injection-probe.ts';
import { type Probe, WebhookConfiguration, type WebhookConfigurationOptions } from './webhook-configuration.ts';
import type { WebhookRule } from './webhook-entries.ts';

const rules: readonly WebhookRule[] = [
  { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], scope: 'Namespaced' },
];

/** What tells an API server when to ask about Pods: without their proxies they are refused, once it reaches a replica. */
export function injectionConfiguration(
  options: Omit<WebhookConfigurationOptions, 'kind' | 'rules' | 'probe'>,
): WebhookConfiguration {
  const probe: Probe = {
    ask: (webhooks, signal) => askForProbe(options.api, webhooks, signal),
    isNeedlessWithoutKind: false,
  };
  return new WebhookConfiguration({ ...options, kind: 'MutatingWebhookConfiguration', rules, probe });
}
