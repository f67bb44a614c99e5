import { readFilePath } from '../../model/file-path.ts';
import { isHostName } from '../../model/host.ts';
import { namesCredential } from '../../model/credential.ts';
import { clientFiles } from '../../model/named-files.ts';
import type { ClientTls, TrafficPolicy, Tunnel } from '../../model/traffic-policy.ts';
import { readLoadBalancer } from './balancer.ts';
import { readConnectionPool, readOutlierDetection, readRetryBudget } from './pool.ts';
import { present } from './quantities.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { filePath } from '../file-path.ts';

/** A policy, and its settings for individual ports. */
export interface PortedPolicy {
  readonly policy: TrafficPolicy;
  readonly portPolicies: Readonly<Record<number, TrafficPolicy>>;
}

const noPolicy: PortedPolicy = { policy: {}, portPolicies: {} };

/** A `trafficPolicy`. A broken field is reported and left out; the rest of the policy applies. */
export function readTrafficPolicy(field: Field, namespace: string): PortedPolicy {
  if (!field.expectObject().isSet) return noPolicy;
  const blocks = readPortPolicy(field, namespace);
  const tunnel = readTunnel(field.get('tunnel'));
  const proxyProtocol = readProxyProtocol(field.get('proxyProtocol'));
  if (tunnel !== undefined && proxyProtocol !== undefined)
    field.get('tunnel').invalid('cannot be combined with proxyProtocol; remove one.');
  const policy = present({ ...blocks, tunnel, proxyProtocol, retryBudget: readRetryBudget(field.get('retryBudget')) });
  const portPolicies = readPortLevelSettings(field.get('portLevelSettings'), namespace);
  if (isEmpty(policy) && isEmpty(portPolicies) && isEmpty(field.value as object))
    field.invalid('is empty; give it a setting or remove it.');
  return { policy, portPolicies };
}

/** The blocks that `portLevelSettings` may also contain. */
function readPortPolicy(field: Field, namespace: string): TrafficPolicy {
  return present({
    connectionPool: readConnectionPool(field.get('connectionPool')),
    loadBalancer: readLoadBalancer(field.get('loadBalancer')),
    outlierDetection: readOutlierDetection(field.get('outlierDetection')),
    tls: readClientTls(field.get('tls'), namespace),
  });
}

function readPortLevelSettings(field: Field, namespace: string): Readonly<Record<number, TrafficPolicy>> {
  const found: Record<number, TrafficPolicy> = {};
  for (const element of field.objects()) {
    const port = element.get('port').get('number');
    const number = port.integer(1, 65_535);
    const policy = readPortPolicy(element, namespace);
    if (number === undefined) {
      if (!port.isSet) port.invalid('must be the number of a port of the service.');
    } else if (found[number] !== undefined) port.invalid(`${number} already has settings; merge the two.`);
    else {
      found[number] = policy;
      if (isEmpty(policy)) element.invalid('is empty; give the port a setting or remove it.');
    }
  }
  return found;
}

function readProxyProtocol(field: Field): 'V1' | 'V2' | undefined {
  return field.expectObject().isSet ? field.get('version').oneOf('V1', 'V2') : undefined;
}

function readTunnel(field: Field): Tunnel | undefined {
  if (!field.expectObject().isSet) return undefined;
  const protocol = field.get('protocol').string() === '' ? 'CONNECT' : field.get('protocol').oneOf('CONNECT', 'POST');
  const host = field.get('targetHost');
  const targetHost = host.string();
  const port = field.get('targetPort');
  const targetPort = port.integer(1, 65_535);
  const isAddress = /^[0-9a-fA-F.:]+$/.test(targetHost);
  if (!isAddress && (!isHostName(targetHost) || targetHost.startsWith('*'))) {
    host.invalid(`${quote(targetHost)} is not a host name or an IP address.`);
    return undefined;
  }
  if (targetPort !== undefined) return { protocol, targetHost, targetPort };
  if (!port.isSet) port.invalid('must be the port to connect to.');
  return undefined;
}

/**
 * TLS to the endpoints. A broken setting never turns TLS off: the proxy would then send in plain text what the owner
 * wanted encrypted.
 */
export function readClientTls(field: Field, namespace: string): ClientTls | undefined {
  if (!field.expectObject().isSet) return undefined;
  const [certificate, key] = [field.get('clientCertificate'), field.get('privateKey')];
  const [authorities, crl] = [field.get('caCertificates'), field.get('caCrl')];
  const isSystem = authorities.value === systemRoots;
  const mode = field.get('mode').oneOf('DISABLE', 'SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL');
  const readsCrl = mode === 'SIMPLE' || mode === 'MUTUAL';
  const tls: ClientTls = {
    mode,
    clientCertificate: filePath(certificate),
    privateKey: filePath(key),
    caCertificates: isSystem ? '' : filePath(authorities),
    caCrl: readsCrl ? filePath(crl) : '',
    credentialName: field.get('credentialName').string(),
    caCredentialName: field.get('caCertCredentialName').string(),
    subjectAltNames: field
      .get('subjectAltNames')
      .strings()
      .filter((name) => name !== ''),
    sni: readServerName(field.get('sni')),
    insecureSkipVerify: field.get('insecureSkipVerify').boolean() ?? false,
  };
  checkClientTls(tls, field, namespace);
  if (isGiven(crl)) checkRevocation(tls, crl);
  const isBroken = [certificate, key, ...(isSystem ? [] : [authorities]), ...(readsCrl ? [crl] : [])].some(
    (each) => isGiven(each) && 'problem' in readFilePath(String(each.value)),
  );
  return {
    ...tls,
    ...(namesCredential(tls) && { credentialFields: credentialFields(tls, field) }),
    ...(clientFiles(tls).length > 0 && { filesField: field.path }),
    // Without the file, a server would be trusted that its owner does not trust.
    ...(isBroken && { isWithheld: true }),
  };
}

function credentialFields({ caCredentialName }: ClientTls, field: Field): { pair: string; roots: string } {
  const pair = field.get('credentialName').path;
  return { pair, roots: caCredentialName === '' ? pair : field.get('caCertCredentialName').path };
}

/** Istio's word for the roots of the operating system, in place of a path. */
const systemRoots = 'system';

const isGiven = ({ value }: Field): boolean => value !== undefined && value !== null && value !== '';

function checkClientTls(tls: ClientTls, field: Field, namespace: string): void {
  const files = ['clientCertificate', 'privateKey', 'caCertificates'].filter((name) => isGiven(field.get(name)));
  if (tls.mode === 'MUTUAL' && tls.credentialName === '') {
    for (const name of ['clientCertificate', 'privateKey'])
      if (!isGiven(field.get(name))) field.get(name).invalid('must name a file in mode MUTUAL.');
  }
  if (tls.credentialName !== '' && files.length > 0)
    field.get('credentialName').invalid(`cannot be combined with ${files.join(' and ')}; remove one of them.`);
  else if (tls.caCredentialName !== '' && files.includes('caCertificates'))
    field.get('caCertCredentialName').invalid('cannot be combined with caCertificates; remove one of them.');
  if (tls.mode === 'ISTIO_MUTUAL' && (namesCredential(tls) || files.length > 0))
    field.get('mode').invalid('ISTIO_MUTUAL uses the certificates of the mesh; remove the others, or use MUTUAL.');
  const verifies = files.includes('caCertificates') || tls.caCredentialName !== '' || tls.subjectAltNames.length > 0;
  if (tls.insecureSkipVerify && verifies)
    field
      .get('insecureSkipVerify')
      .invalid('contradicts caCertificates, caCertCredentialName and subjectAltNames; remove them.');
  for (const [member, name] of [
    ['credentialName', tls.credentialName],
    ['caCertCredentialName', tls.caCredentialName],
  ] as const) {
    const other = /^configmap:\/\/([^/]+)\//.exec(name)?.[1];
    if (other !== undefined && other !== namespace)
      field.get(member).invalid(`names a ConfigMap of namespace ${quote(other)}; use one of ${namespace}.`);
  }
}

/** The list is read if server certificates are verified with files. */
function checkRevocation(tls: ClientTls, field: Field): void {
  const { mode, insecureSkipVerify } = tls;
  const ineffective = (why: string): void =>
    field.findings.report(field.path, 'Ineffective', `${quote(String(field.value))} has no effect ${why}`);
  if (mode !== 'SIMPLE' && mode !== 'MUTUAL') ineffective(`in mode ${mode}; use SIMPLE or MUTUAL.`);
  else if (namesCredential(tls))
    field.invalid('cannot be combined with credentialName; put the list into the Secret as ca.crl.');
  else if (insecureSkipVerify) ineffective('with insecureSkipVerify, which verifies nothing; remove one of them.');
}

function readServerName(field: Field): string {
  const name = field.string();
  if (name.length <= 255) return name;
  field.invalid('is longer than 255 characters.');
  return '';
}

function isEmpty(members: object): boolean {
  return Object.keys(members).length === 0;
}
