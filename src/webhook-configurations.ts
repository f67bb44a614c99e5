import type { Config } from './config/config.ts';
import { askForRefusal } from './kube/validation-probe.ts';
import { WebhookConfiguration, type WebhookConfigurationOptions } from './kube/webhook-configuration.ts';

/** What tells the API server how to recognize this control plane. */
export function webhookConfigurations(
  { webhooks, mesh, revision }: Config,
  shared: Pick<WebhookConfigurationOptions, 'api' | 'clock' | 'random' | 'log' | 'outages'>,
  roots: { readonly pem: string },
): readonly WebhookConfiguration[] {
  if (webhooks === undefined) return [];
  const { injection, validation } = webhooks.configurations;
  const common = { ...shared, roots: () => roots.pem };
  const probe = (signal: AbortSignal): Promise<void> => askForRefusal(shared.api, mesh.rootNamespace, revision, signal);
  return [
    ...(injection === undefined
      ? []
      : [new WebhookConfiguration({ ...common, kind: 'MutatingWebhookConfiguration', name: injection })]),
    ...(validation === undefined
      ? []
      : [
          new WebhookConfiguration({
            ...common,
            kind: 'ValidatingWebhookConfiguration',
            name: validation,
            ...(webhooks.failClosed && { probe }),
          }),
        ]),
  ];
}
