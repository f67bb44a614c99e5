import { quote } from '../../api/quote.ts';
import type { Reader } from '../../cache/graph.ts';
import { type SecretProvider, socketProvider } from '../../model/credential.ts';
import type { ProviderService } from '../../model/mesh-config.ts';
import { outboundCluster } from '../../model/service.ts';
import { egressImports } from '../../model/sidecar.ts';
import { type Traits, anyTraits } from '../../model/traits.ts';
import { serviceFor } from '../clients/lookups.ts';
import type { PolicySet } from '../clients/workload-policies.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Settings, settingOf } from '../settings.ts';

interface ProviderDeps {
  readonly services: Services;
  readonly sidecars: Sidecars;
}

/** The service behind an extension provider. Proxies that do not see it cannot ask it. */
export function providerService(
  { service: named, port }: ProviderService,
  { namespace, sidecar, isRouter }: Pick<PolicySet, 'namespace' | 'sidecar' | 'isRouter'>,
  read: Reader,
  deps: ProviderDeps,
): { readonly host: string; readonly cluster: string } | undefined {
  const slash = named.indexOf('/');
  const host = named.slice(slash + 1);
  const traits = { ...anyTraits, proxyType: isRouter ? ('router' as const) : ('sidecar' as const) };
  const view = { client: namespace, traits, ...(sidecar !== '' && { egress: { sidecar, listener: 0 } }) };
  const service = serviceFor(read, deps, view, host);
  if (service === undefined || !service.ports.some(({ number }) => number === port)) return undefined;
  if (slash >= 0 && service.namespace !== named.slice(0, slash)) return undefined;
  const egress = sidecar === '' ? undefined : read.get(deps.sidecars.models, sidecar)?.egress;
  if (egress?.every(({ hosts }) => !egressImports(hosts, namespace, service))) return undefined;
  return { host, cluster: outboundCluster(port, '', host) };
}

/** Who has the secrets of a router's servers with names that begin with `sds://`: nobody, or why it cannot be asked. */
export function secretProviderOf(
  { traits, namespace }: { readonly traits: Pick<Traits, 'credentialSocket'>; readonly namespace: string },
  read: Reader,
  deps: ProviderDeps & { readonly settings: Settings },
): SecretProvider | { readonly problem: string } | undefined {
  if (traits.credentialSocket) return socketProvider;
  const { secretProvider } = settingOf(read, deps.settings.security);
  if (secretProvider === undefined) return undefined;
  const found = providerService(secretProvider, { namespace, sidecar: '', isRouter: true }, read, deps);
  if (found !== undefined) return { cluster: found.cluster, authority: found.host, keepsPrefix: false };
  const { name, service, port } = secretProvider;
  return { problem: `is for the extension provider ${quote(name)}: ${service} with port ${port} does not exist` };
}

export function usableProvider(...args: Parameters<typeof secretProviderOf>): SecretProvider | undefined {
  const found = secretProviderOf(...args);
  return found === undefined || 'problem' in found ? undefined : found;
}
