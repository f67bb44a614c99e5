import { kinds } from '../api/kinds.ts';
import type { Config } from '../config/config.ts';
import { injectionConfiguration } from '../kube/writing/injection-configuration.ts';
import { askForRefusal } from '../kube/writing/validation-probe.ts';
import {
  type Probe,
  WebhookConfiguration,
  type WebhookConfigurationOptions,
} from '../kube/writing/webhook-configuration.ts';
import type { WebhookRule } from '../kube/writing/webhook-entries.ts';

/** What the API server is to ask about: the kinds that are validated. */
export const validationRules: readonly WebhookRule[] = [
  ...Map.groupBy(
    kinds.filter(({ custom }) => custom),
    ({ group }) => group,
  ),
].map(([group, of]) => ({
  operations: ['CREATE', 'UPDATE'],
  apiGroups: [group],
  apiVersions: ['*'],
  resources: of.map(({ plural }) => plural),
  scope: 'Namespaced',
}));

/** What tells the own API server what to ask, and how to recognize this control plane. */
export function webhookConfigurations(
  { webhooks, mesh, revision }: Config,
  shared: Pick<WebhookConfigurationOptions, 'api' | 'clock' | 'random' | 'log' | 'outages'>,
  roots: { readonly pem: string },
): readonly WebhookConfiguration[] {
  if (webhooks === undefined) return [];
  const { injection, validation } = webhooks.configurations;
  const common = { ...shared, roots: () => roots.pem };
  const probe: Probe = {
    ask: (_, signal) => askForRefusal(shared.api, mesh.rootNamespace, revision, signal),
    isNeedlessWithoutKind: true,
  };
  return [
    ...(injection === undefined ? [] : [injectionConfiguration({ ...common, name: injection })]),
    ...(validation === undefined
      ? []
      : [
          new WebhookConfiguration({
            ...common,
            kind: 'ValidatingWebhookConfiguration',
            name: validation,
            rules: validationRules,
            ...(webhooks.failClosed && { probe }),
          }),
        ]),
  ];
}
