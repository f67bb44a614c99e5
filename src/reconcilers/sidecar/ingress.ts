import type { IngressEndpoint } from '../../model/inbound.ts';
import type { ServerTls } from '../../model/gateway.ts';
import { type Protocol, isTls } from '../../model/service.ts';
import type { IngressListener } from '../../model/sidecar.ts';
import { readConnectionPool } from '../destination-rule/pool.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { readServerTls } from '../gateway/tls.ts';
import { parseProtocol } from '../protocol.ts';
import { canonicalAddress, isAddress } from '../../model/address.ts';

/** `spec.ingress` */
export function readIngress(field: Field): IngressListener[] {
  const ports = new Set<number>();
  return field.objects().map((element) => {
    const listener = readListener(element);
    if (ports.has(listener.port)) element.get('port').get('number').invalid(`${listener.port} is used twice.`);
    ports.add(listener.port);
    return listener;
  });
}

function readListener(field: Field): IngressListener {
  const port = field.get('port').expectObject();
  if (!port.isSet) port.invalid('must specify number and protocol.');
  const bind = canonicalAddress(field.get('bind').string());
  if (bind !== '' && !isAddress(bind)) field.get('bind').invalid(`${quote(bind)} is not an IP address.`);
  const pool = readConnectionPool(field.get('connectionPool'));
  const protocol = parseProtocol(port.get('protocol').string());
  const tls = readTls(field.get('tls'), protocol);
  return {
    port: port.get('number').integer(1, 65_535) ?? 0,
    name: port.get('name').string(),
    protocol,
    bind,
    bindToPort: field.get('captureMode').oneOf('DEFAULT', 'IPTABLES', 'NONE') === 'NONE',
    endpoint: readEndpoint(field.get('defaultEndpoint')),
    ...(tls === undefined ? {} : { tls: { ...tls, field: field.get('tls').path } }),
    ...(pool === undefined ? {} : { connectionPool: pool }),
  };
}

/** TLS for clients outside the mesh. The certificates are files: Secrets are for Gateways and DestinationRules. */
function readTls(field: Field, protocol: Protocol): ServerTls | undefined {
  if (!field.expectObject().isSet) return undefined;
  if (!isTls(protocol)) {
    field.invalid(`requires protocol HTTPS or TLS, not ${protocol}.`);
    return undefined;
  }
  const mode = field.get('mode').string('PASSTHROUGH');
  if (mode !== 'SIMPLE' && mode !== 'MUTUAL') {
    field.get('mode').invalid(`must be SIMPLE or MUTUAL, not ${mode}.`);
    return undefined;
  }
  const server = readServerTls(field, protocol);
  if (server.kind !== 'https' && server.kind !== 'tls') return undefined;
  for (const name of ['credentialName', 'credentialNames', 'caCertCredentialName'])
    if (field.get(name).isSet)
      field
        .get(name)
        .invalid('names a Secret, which ingress listeners cannot use; set serverCertificate and privateKey to files.');
  return server.tls;
}

const FORMS = '127.0.0.1:port, [::1]:port, 0.0.0.0:port, [::]:port or unix:///path';

function readEndpoint(field: Field): IngressEndpoint {
  const text = field.string();
  if (text === '') return { kind: 'originalDestination' };
  if (text.startsWith('unix://')) {
    const path = text.slice('unix://'.length);
    if (!/^[/@]./.test(path)) field.invalid(`${quote(text)} is not an absolute path.`);
    return { kind: 'unix', path };
  }
  const [, v4, v6, digits] = /^(?:(127\.0\.0\.1|0\.0\.0\.0)|\[(::1|::)\]):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port < 1 || port > 65_535) {
    field.invalid(`${quote(text)} is not one of ${FORMS}.`);
    return { kind: 'originalDestination' };
  }
  const kind = v4 === '127.0.0.1' || v6 === '::1' ? 'loopback' : 'workload';
  return { kind, family: v4 === undefined ? 'v6' : 'v4', port };
}
