import type { ProviderService } from '../../model/mesh-config.ts';
import type { Field } from '../field.ts';

/** The extension provider that has secrets: the first one of its kind, as in Istio. */
export function readSecretProvider(providers: Field): (ProviderService & { readonly name: string }) | undefined {
  const [first, ...others] = providers
    .objects()
    .map((provider) => provider.get('sds'))
    .filter(({ isSet }) => isSet);
  for (const other of others)
    other.findings.report(other.path, 'Ineffective', 'has no effect: the first provider of secrets is used.');
  if (!first?.expectObject().isSet) return undefined;
  const [service, port] = [first.get('service'), first.get('port')];
  if (service.string() === '') service.invalid('is missing: name a host, or namespace/host.');
  if (!port.isSet) port.invalid('is missing.');
  return { name: first.get('name').string(), service: service.string(), port: port.integer(1, 65_535) ?? 0 };
}
