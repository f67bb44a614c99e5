import type { ConnectedProxy } from '../ads/types.ts';
import type { Pod, Service } from '../api/core.ts';
import type { Gateway } from '../api/gen/gateway.gen.ts';
import { type Labels, selects } from '../model/labels.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { accountOf, classOf, proxyOf } from './proxy.ts';

/**
 * The routers that the Gateways in some files are for, as if they were connected: what a Gateway means depends on them.
 * Each is one of the Pods that a Gateway selects, of those that differ only in what no selector names. For a selector
 * without Pods, it is a Pod of the Services whose selectors contain it; without these, one in the Gateway's namespace.
 */
export function routersOf({ objects }: Pick<LoadedDirectory, 'objects'>, cluster: string): readonly ConnectedProxy[] {
  const gateways = ((objects.get('Gateway') ?? []) as readonly Gateway[]).map(({ metadata, spec }) => ({
    namespace: metadata.namespace ?? '',
    selector: spec.selector ?? {},
  }));
  const pods = (objects.get('Pod') ?? []) as readonly Pod[];
  const services = ((objects.get('Service') ?? []) as readonly Service[]).map(({ metadata, spec }) => ({
    namespace: metadata.namespace ?? '',
    selector: spec?.selector ?? {},
  }));
  const routers = new Map<string, ConnectedProxy>();
  const add = (namespace: string, labels: Labels, pod?: Pod): void => {
    const account = accountOf(pod);
    const key = classOf(namespace, account, labels);
    if (!routers.has(key)) routers.set(key, proxyOf(key, { type: 'router', namespace, labels, account, cluster, pod }));
  };
  for (const selector of new Map(
    gateways.map((gateway) => [JSON.stringify(gateway.selector), gateway.selector]),
  ).values()) {
    // One without a selector is for whatever the others select.
    if (Object.keys(selector).length === 0) continue;
    const selected = pods.filter(({ metadata }) => selects(selector, metadata.labels ?? {}));
    for (const pod of selected) add(pod.metadata.namespace ?? '', pod.metadata.labels ?? {}, pod);
    if (selected.length > 0) continue;
    const leading = services.filter((service) => selects(selector, service.selector));
    for (const { namespace, selector: labels } of leading) add(namespace, labels);
    if (leading.length > 0) continue;
    for (const gateway of gateways) if (isSame(gateway.selector, selector)) add(gateway.namespace, selector);
  }
  if (routers.size === 0) for (const { namespace } of gateways) add(namespace, {});
  return [...routers.values()];
}

const isSame = (a: Labels, b: Labels): boolean => JSON.stringify(a) === JSON.stringify(b);
