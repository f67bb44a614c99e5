import { isAddress } from '../../model/address.ts';
import { isHostName, resolveShortName } from '../../model/host.ts';
import { meshGateway } from '../../model/virtual-service.ts';
import type { Destination } from '../../model/route.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';

/** What names in a VirtualService are relative to. */
export interface NameContext {
  readonly namespace: string;
  readonly domainSuffix: string;
}

/** `mesh`, or `namespace/name`; a finding if that is not the name of a Gateway. */
export function resolveGateway(field: Field, namespace: string): string {
  const written = field.string();
  const resolved = gatewayNamed(written, namespace);
  if (resolved === meshGateway) return resolved;
  const [owner = '', name = '', ...more] = resolved.split('/');
  if (!isLabel(owner) || !isObjectName(name) || more.length > 0) {
    field.invalid(`${quote(written)} is not the name of a Gateway; write name, namespace/name or mesh.`);
  }
  return resolved;
}

/** From `name`, `./name`, `namespace/name`, or the former full name `name.namespace.svc.cluster.local`. */
export function gatewayNamed(written: string, namespace: string): string {
  if (written === meshGateway) return written;
  if (written.startsWith('./')) return `${namespace}${written.slice(1)}`;
  if (written.includes('/')) return written;
  const [first = '', second] = written.split('.');
  return second === undefined ? `${namespace}/${written}` : `${second}/${first}`;
}

/** The `destination` of a route or a mirror. */
export function readDestination(field: Field, context: NameContext): Destination {
  const host = field.get('host');
  const written = host.string();
  if (written === '*' || !isHost(written)) {
    host.invalid(
      written === '' ? 'must name a host.' : `${quote(written)} is not a host name; write the full name of a host.`,
    );
  }
  const subset = field.get('subset');
  const subsetName = subset.string();
  if (subsetName !== '' && !isLabel(subsetName)) subset.invalid(`${quote(subsetName)} is not the name of a subset.`);
  const port = field.get('port').expectObject().get('number').integer(1, 65_535);
  return {
    host: resolveShortName(written, context.namespace, context.domainSuffix),
    subset: subsetName,
    ...(port === undefined ? {} : { port }),
    field: field.path,
  };
}

/** An exact or wildcard host name, or an address. */
export function isHost(text: string): boolean {
  return isHostName(text) || isAddress(text);
}

function isLabel(text: string): boolean {
  return /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/i.test(text);
}

function isObjectName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/i.test(text);
}
