import { quote } from '../api/quote.ts';
import type { Field } from './field.ts';

const PREFIX = 'sds://';

/** In Istio, names with this prefix are for a provider of secrets (`extensionProviders.sds`). Here they are of Secrets. */
export function remarkOnProvider(field: Field): void {
  const { value } = field;
  if (typeof value !== 'string' || !value.startsWith(PREFIX)) return;
  const name = quote(value.slice(PREFIX.length));
  const message = `asks no provider of secrets: there are none, and the Secret ${name} is used. Write ${name}.`;
  field.findings.report(field.path, 'Ineffective', message);
}
