import type { Service } from '../api/core.ts';
import type { Gateway } from '../api/gen/gateway.gen.ts';
import { refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { listIn, textIn } from '../injection/pod.ts';
import { type Labels, printSelector, selects } from '../model/labels.ts';
import type { FileContext } from './context.ts';
import type { WorkloadObject } from './workloads.ts';

/** Labels that workloads of every kind have: that a file has some says nothing about routers. */
const OF_ANY_WORKLOAD = ['app', 'name', 'version', 'component', 'tier', 'environment', 'env', 'release', 'k8s-app'];

/** Values of the label `istio` that Istio's charts give to istiod. */
const ISTIOD = ['pilot', 'istiod'];

/**
 * Gateways that select no Pod. The routers are often somewhere else than the Gateways, so that nothing is said unless
 * the files are complete, or have routers.
 *
 * A condition could not say it: a router that is not connected at the moment may be about to start.
 */
export function remarksOnGatewaySelectors(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  workloads: readonly WorkloadObject[],
  { source, complete }: FileContext,
): readonly Problem[] {
  const gateways = (objects.get('Gateway') ?? []) as readonly Gateway[];
  const services = ((objects.get('Service') ?? []) as readonly Service[]).map(({ spec }) => spec?.selector ?? {});
  // Who has a Service in front of routers in the files may have their Pods elsewhere.
  const known: readonly Labels[] = [...workloads.map(({ labels }) => labels), ...services];
  const hasPods = (selector: Labels): boolean => known.some((labels) => selects(selector, labels));
  const selectors = gateways.map(({ spec }) => spec.selector ?? {});
  const hasRouters =
    complete ||
    workloads.some(isRouter) ||
    selectors.some((selector) => Object.keys(selector).length > 0 && hasPods(selector));
  return gateways.flatMap((gateway, i): Problem[] => {
    const selector = selectors[i]!;
    if (Object.keys(selector).length === 0 || hasPods(selector)) return [];
    if (!hasRouters && !hasValuesOfSameLabel(selector, known)) return [];
    const message = `selects nobody: no Pod has the labels ${printSelector(selector)}. Correct the selector, or the labels of the router's Pods. Until then no router opens the ports of this Gateway.`;
    return [{ object: refOf(source, gateway), field: 'spec.selector', reason: 'RefNotFound', message }];
  });
}

/** It has been told to run as one, or gets the template of one. */
function isRouter({ annotations, spec }: WorkloadObject): boolean {
  const templates = annotations['inject.istio.io/templates']?.split(',').map((name) => name.trim()) ?? [];
  if (templates.includes('gateway')) return true;
  return listIn(spec, 'containers').some(
    (container) =>
      textIn(container, 'name') === 'istio-proxy' &&
      Array.isArray(container['args']) &&
      (container['args'] as readonly unknown[]).includes('router'),
  );
}

/** Labels such as `istio` are for routers, and for istiod: where a router in the files has another value, it is a mistake. */
function hasValuesOfSameLabel(selector: Labels, known: readonly Labels[]): boolean {
  const others = known.filter((labels) => !ISTIOD.includes(labels['istio'] ?? ''));
  return Object.keys(selector).some(
    (key) =>
      !OF_ANY_WORKLOAD.includes(key) && !key.includes('/') && others.some((labels) => Object.hasOwn(labels, key)),
  );
}
