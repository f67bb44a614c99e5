import { canonicalAddress, isAddress } from '../../model/address.ts';
import { canonicalHost, isHostName } from '../../model/host.ts';
import type { EgressHost, EgressListener } from '../../model/sidecar.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { parseProtocol } from '../protocol.ts';

/** `spec.egress` */
export function readEgress(field: Field): EgressListener[] {
  const elements = field.objects();
  const taken = new Set<string>();
  return elements.map((element, index) => {
    const listener = readListener(element);
    if (listener.port === undefined) {
      if (index < elements.length - 1) element.invalid('has no port, so it must be the last egress listener.');
    } else {
      const key = `${listener.bind === '' ? '' : listener.bind} ${listener.port.number}`;
      if (taken.has(key)) element.get('port').invalid('is already taken by an earlier egress listener.');
      taken.add(key);
    }
    return listener;
  });
}

function readListener(field: Field): EgressListener {
  const bind = canonicalAddress(field.get('bind').string());
  const unix = bind.startsWith('unix://');
  const port = field.get('port').expectObject();
  const captureMode = field.get('captureMode').oneOf('DEFAULT', 'IPTABLES', 'NONE');
  const number = port.isSet ? (port.get('number').integer(0, 65_535) ?? 0) : 0;
  if (unix) checkUnixSocket(field, bind, number, captureMode);
  else if (bind !== '' && !isAddress(bind))
    field.get('bind').invalid(`${quote(bind)} is neither an IP address nor a unix socket.`);
  else if (port.isSet && number === 0)
    port.get('number').invalid('must be a port from 1 to 65535; only a unix socket has none.');
  const hosts = field.get('hosts');
  const read = hosts.list().map(readHost);
  if (read.length === 0) hosts.invalid('must have at least one namespace/host, for example */*.');
  return {
    ...(port.isSet
      ? { port: { number, name: port.get('name').string(), protocol: parseProtocol(port.get('protocol').string()) } }
      : {}),
    bind,
    bindToPort: captureMode === 'NONE' || unix,
    hosts: read,
  };
}

function checkUnixSocket(field: Field, bind: string, number: number, captureMode: string): void {
  if (!bind.startsWith('unix:///') && !bind.startsWith('unix://@'))
    field
      .get('bind')
      .invalid(`${quote(bind)} is not an absolute path (unix:///path) or an abstract name (unix://@name).`);
  if (!field.get('port').isSet) field.get('port').invalid('must specify the protocol of the unix socket.');
  else if (number !== 0) field.get('port').get('number').invalid('must be 0 for a unix socket.');
  if (captureMode === 'IPTABLES') field.get('captureMode').invalid('must be DEFAULT or NONE for a unix socket.');
}

/** `namespace/host` */
function readHost(field: Field): EgressHost {
  const text = field.string();
  const parts = text.split('/');
  const [scope = '', host = ''] = parts;
  const excluded = scope.startsWith('~');
  // `~/host` excludes the host in every namespace.
  const namespace = excluded ? scope.slice(1) || '*' : scope;
  if (parts.length !== 2 || !isNamespace(namespace))
    field.invalid(`${quote(text)} is not namespace/host; the namespace is a name, *, or . for this one.`);
  else if (!isHostName(host) || (host !== '*' && !host.includes('.')))
    field.invalid(
      `${quote(host)} is not a full host name; use for example reviews.prod.svc.cluster.local, *.example.com or *.`,
    );
  return { namespace, host: canonicalHost(host), excluded };
}

function isNamespace(text: string): boolean {
  return text === '*' || text === '.' || /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text);
}
