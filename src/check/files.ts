import type { Problem } from '../api/problem.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { remarksOnAnnotations } from './annotations.ts';
import type { FileContext } from './context.ts';
import { remarksOnGatewaySelectors } from './gateway-selectors.ts';
import { remarksOnInjection } from './injection.ts';
import { remarksOnRootPolicies } from './root-policies.ts';
import { remarksOnServicePorts } from './service-ports.ts';
import { remarksOnSharedServers } from './shared-servers.ts';
import { remarksOnNamespaces } from './unknown-namespaces.ts';
import type { WorkloadObject } from './workloads.ts';

/** What no condition can say: it is about objects without one, or about Pods before they run. */
export function remarksOnFiles(
  files: LoadedDirectory,
  workloads: readonly WorkloadObject[],
  context: FileContext,
): readonly Problem[] {
  return [
    ...remarksOnGatewaySelectors(files, workloads, context),
    ...remarksOnNamespaces(files, context),
    ...remarksOnRootPolicies(files, workloads, context),
    ...remarksOnSharedServers(files, context),
    ...remarksOnServicePorts(files, workloads, context),
    ...remarksOnInjection(files, workloads, context),
    ...remarksOnAnnotations(files, workloads, context),
  ];
}
