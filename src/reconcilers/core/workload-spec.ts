import { Buffer } from 'node:buffer';
import { isAddress, isSocket } from '../../model/address.ts';
import type { Labels } from '../../model/labels.ts';
import { isHostName, isWildcard } from '../../model/host.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';

/** What a WorkloadEntry and an endpoint of a ServiceEntry have in common. */
export interface WorkloadSpec {
  /** IP address, host name or `unix://` path; empty behind a gateway of another network. */
  readonly address: string;
  readonly ports: Readonly<Record<string, number>>;
  readonly labels: Labels;
  readonly locality: string;
  readonly network: string;
  readonly serviceAccount: string;
  readonly weight?: number;
}

export function readWorkloadSpec(field: Field): WorkloadSpec {
  const address = field.get('address');
  const ports = field.get('ports');
  const weight = field.get('weight').integer(0, 0xffff_ffff);
  const spec = {
    address: address.string(),
    ports: Object.fromEntries(ports.entries().map(([name, port]) => [name, port.integer(1, 65_535) ?? 0])),
    labels: field.get('labels').stringMap(),
    locality: field.get('locality').string(),
    network: field.get('network').string(),
    serviceAccount: field.get('serviceAccount').string(),
    ...(weight === undefined ? {} : { weight }),
  };
  checkAddress(address, spec);
  if (isSocket(spec.address) && Object.keys(spec.ports).length > 0)
    ports.invalid('must not be set: a unix socket has no ports.');
  return spec;
}

function checkAddress(field: Field, { address, network }: Pick<WorkloadSpec, 'address' | 'network'>): void {
  if (address === '') {
    if (network === '') field.invalid('must be an IP address, a host name or a unix socket.');
  } else if (isSocket(address)) {
    if (!isSocketPath(address))
      field.invalid(
        `${quote(address)} is not a unix socket; write unix:///path or unix://@name, with at most 107 bytes.`,
      );
  } else if (!isAddress(address) && (!isHostName(address) || isWildcard(address)))
    field.invalid(`${quote(address)} is neither an IP address nor a host name.`);
}

/** What Linux takes: Envoy rejects any others, along with the resource that contains them. */
export function isSocketPath(address: string): boolean {
  return /^unix:\/\/[/@][^\0]+$/.test(address) && Buffer.byteLength(address) <= 'unix://'.length + 107;
}
