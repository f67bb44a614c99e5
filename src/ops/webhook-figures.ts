import type { MetricFactory } from './metric-factory.ts';
import type { MetricSources } from './metric-sources.ts';

type Factory = Pick<MetricFactory, 'gauge' | 'gauges' | 'counter' | 'counters'>;

/** What the API server asks, and whether it can. Names are Istio's where it has them. */
export function countWebhooks(
  { gauge, gauges, counter, counters }: Factory,
  { webhooks, webhookConfigurations }: Pick<MetricSources, 'webhooks' | 'webhookConfigurations'>,
): void {
  if (webhookConfigurations !== undefined)
    gauges(
      'fairlead_webhook_configuration_current',
      'Whether the API server has been told the roots of this control plane; absent while the configuration is.',
      ['name'],
      () =>
        [...webhookConfigurations()].flatMap(([name, right]) =>
          right === undefined ? [] : [[{ name }, Number(right)]],
        ),
    );
  if (webhooks === undefined) return;
  counters('fairlead_webhook_unanswered_total', 'Calls of webhooks that got no verdict, by reason.', ['reason'], () =>
    [...webhooks().unanswered].map(([reason, count]) => [{ reason }, count]),
  );
  for (const result of ['passed', 'failed'] as const)
    counters(`galley_validation_${result}`, `Objects whose validation ${result}.`, ['group', 'resource'], () =>
      [...webhooks().validations].map(({ group, resource, ...counts }) => [{ group, resource }, counts[result]]),
    );
  if (webhooks().injections === undefined) return;
  const injections = () => webhooks().injections ?? { injected: 0, untouched: 0, refused: 0 };
  counter('sidecar_injection_requests_total', 'Pods that were created and decided about.', () => {
    const { injected, untouched, refused } = injections();
    return injected + untouched + refused;
  });
  counter('sidecar_injection_success_total', 'Pods that got a proxy.', () => injections().injected);
  counter('sidecar_injection_skip_total', 'Pods that were left as they are.', () => injections().untouched);
  counter('sidecar_injection_failure_total', 'Pods that were refused.', () => injections().refused);
  gauge(
    'fairlead_injection_template_problems',
    'Problems of the newest injection templates. If there are any, the former ones are in use.',
    () => webhooks().templateProblems ?? 0,
  );
}
