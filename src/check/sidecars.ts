import type { ConnectedProxy } from '../ads/types.ts';
import type { Pod } from '../api/core.ts';
import type { Gateway } from '../api/gen/gateway.gen.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { selects } from '../model/labels.ts';
import { accountOf, classOf, proxyOf } from './proxy.ts';

/** At most this many classes; and fewer for many services, each of which a class sees: so many times services in all. */
const [mostClasses, mostViews] = [50, 20_000];

/**
 * Sidecars of the Pods in some files, as if they were connected: what is said of a workload depends on them. One for
 * each class of Pods that differ only in what no selector names, of those that no Gateway selects, in the order of the
 * files.
 */
export function sidecarsOf({ objects }: Pick<LoadedDirectory, 'objects'>, cluster: string): readonly ConnectedProxy[] {
  const routers = ((objects.get('Gateway') ?? []) as readonly Gateway[]).flatMap(({ spec: { selector = {} } }) =>
    Object.keys(selector).length === 0 ? [] : [selector],
  );
  const services = (objects.get('Service')?.length ?? 0) + (objects.get('ServiceEntry')?.length ?? 0);
  const most = Math.min(mostClasses, Math.max(1, Math.floor(mostViews / Math.max(services, 1))));
  const classes = new Map<string, ConnectedProxy>();
  for (const pod of (objects.get('Pod') ?? []) as readonly Pod[]) {
    if (classes.size >= most) break;
    const { namespace = '', labels = {}, annotations = {} } = pod.metadata;
    const isInjected = (labels[inject] ?? annotations[inject]) !== 'false' && pod.spec?.hostNetwork !== true;
    const account = accountOf(pod);
    const key = classOf(namespace, account, labels);
    if (!isInjected || classes.has(key) || routers.some((selector) => selects(selector, labels))) continue;
    classes.set(key, proxyOf(key, { type: 'sidecar', namespace, labels, account, cluster, pod }));
  }
  return [...classes.values()];
}

const inject = 'sidecar.istio.io/inject';
