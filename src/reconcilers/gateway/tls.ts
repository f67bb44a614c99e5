import type { ServerCertificates, ServerKind, ServerTls, TlsVersion } from '../../model/gateway.ts';
import { type Protocol, isTls, protocolClass } from '../../model/service.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { filePath } from '../file-path.ts';
import { cipherListProblem, cipherProblem, curveProblem } from './ciphers.ts';

/** `spec.servers[].tls`, as far as the port's protocol allows it. */
export function readServerTls(field: Field, protocol: Protocol): ServerKind {
  // The first value of the API's enum: what settings without a mode have always meant.
  const mode = field
    .get('mode')
    .oneOf('PASSTHROUGH', 'SIMPLE', 'MUTUAL', 'AUTO_PASSTHROUGH', 'ISTIO_MUTUAL', 'OPTIONAL_MUTUAL');
  const forwards = mode === 'PASSTHROUGH' || mode === 'AUTO_PASSTHROUGH';
  if (!isTls(protocol)) return withoutTls(field, protocol, forwards);
  if (!field.isSet) field.invalid(`must be set, because the protocol of the port is ${protocol}.`);
  if (field.get('httpsRedirect').boolean() === true)
    ineffective(field.get('httpsRedirect'), 'Only servers of protocol HTTP redirect to https.');
  if (forwards) {
    for (const name of [...certificateFields, 'caCertificates', 'caCrl'])
      if (isGiven(field.get(name))) ineffective(field.get(name), `In mode ${mode}, TLS is not terminated here.`);
    return { kind: mode === 'PASSTHROUGH' ? 'passthrough' : 'autoPassthrough' };
  }
  return { kind: protocol === 'HTTPS' ? 'https' : 'tls', tls: readTermination(field, mode) };
}

function withoutTls(field: Field, protocol: Protocol, forwards: boolean): ServerKind {
  if (protocolClass(protocol) !== 'http') {
    if (field.isSet) field.invalid('requires protocol HTTPS or TLS; remove it or change the protocol.');
    return { kind: 'tcp' };
  }
  if (!forwards || [...certificateFields, 'caCertificates'].some((name) => isGiven(field.get(name))))
    field.invalid('can only set httpsRedirect on a plaintext HTTP port; for TLS use protocol HTTPS.');
  return { kind: 'http' };
}

const certificateFields = ['serverCertificate', 'privateKey', 'credentialName', 'credentialNames', 'tlsCertificates'];

function readTermination(field: Field, mode: ServerTls['mode']): ServerTls {
  const validates = mode !== 'SIMPLE';
  const minProtocolVersion = readVersion(field.get('minProtocolVersion'));
  const maxProtocolVersion = readVersion(field.get('maxProtocolVersion'));
  if (minProtocolVersion !== undefined && maxProtocolVersion !== undefined && minProtocolVersion > maxProtocolVersion)
    field.get('minProtocolVersion').invalid(`${minProtocolVersion} is above maxProtocolVersion.`);
  const tls: ServerTls = {
    mode,
    certificates: mode === 'ISTIO_MUTUAL' ? meshCertificates(field) : readCertificates(field, mode),
    subjectAltNames: names(field.get('subjectAltNames')),
    verifyCertificateSpki: hashes(field.get('verifyCertificateSpki'), /^[\w+/]{43}=$/, 'base64'),
    verifyCertificateHash: hashes(field.get('verifyCertificateHash'), /^[\da-f]{2}(:?[\da-f]{2}){31}$/i, 'hexadecimal'),
    caCrl: filePath(field.get('caCrl')),
    insecureSkipVerify: field.get('insecureSkipVerify').boolean() ?? false,
    ...(minProtocolVersion === undefined ? {} : { minProtocolVersion }),
    ...(maxProtocolVersion === undefined ? {} : { maxProtocolVersion }),
    cipherSuites: readCiphers(field.get('cipherSuites')),
    ecdhCurves: usable(field.get('ecdhCurves'), curveProblem),
    alpnProtocols: readAlpn(field.get('alpnProtocols')),
  };
  if (!validates)
    for (const name of ['subjectAltNames', 'verifyCertificateSpki', 'verifyCertificateHash', 'insecureSkipVerify'])
      if (isGiven(field.get(name)))
        ineffective(field.get(name), 'In mode SIMPLE, clients present no certificate; use MUTUAL or OPTIONAL_MUTUAL.');
  checkRevocation(field.get('caCrl'), tls);
  return tls;
}

function checkRevocation(field: Field, { mode, caCrl, certificates }: ServerTls): void {
  if (caCrl === '') return;
  if (mode === 'SIMPLE') field.invalid('is for client certificates, which mode SIMPLE does not request.');
  if (certificates.kind === 'credentials')
    field.invalid('cannot be combined with credentialName; put the list into the Secret as ca.crl.');
}

function meshCertificates(field: Field): ServerCertificates {
  for (const name of [...certificateFields, 'caCertificates'])
    if (isGiven(field.get(name)))
      field
        .get(name)
        .invalid('cannot be set in mode ISTIO_MUTUAL, which uses the certificates of the mesh; use MUTUAL.');
  return { kind: 'mesh' };
}

function readCertificates(field: Field, mode: ServerTls['mode']): ServerCertificates {
  const single = field.get('credentialName');
  const several = names(field.get('credentialNames'));
  const credentials = several.length > 0 ? several : single.string() === '' ? [] : [single.string()];
  const pairs = field.get('tlsCertificates').objects();
  const pair = isGiven(field.get('serverCertificate')) && isGiven(field.get('privateKey'));
  const sources = [single.string() !== '', several.length > 0, pairs.length > 0, pair].filter((given) => given).length;
  if (sources > 1)
    field.invalid(
      'must have only one of credentialName, credentialNames, tlsCertificates, and serverCertificate with privateKey.',
    );
  // Istio's name for the certificates that its agent obtained.
  if (credentials.length === 1 && credentials[0] === 'builtin://') return { kind: 'mesh' };
  if (credentials.length > 0)
    return { kind: 'credentials', names: credentials, roots: field.get('caCertCredentialName').string() };

  const roots = field.get('caCertificates');
  if (mode !== 'SIMPLE' && !isGiven(roots))
    roots.invalid(`must name the CA file for client certificates in mode ${mode}.`);
  const files = (pairs.length > 0 ? pairs : [field]).map((element) => ({
    certificate: requiredFile(element.get('serverCertificate'), mode),
    key: requiredFile(element.get('privateKey'), mode),
  }));
  return { kind: 'files', files, roots: filePath(roots) };
}

function requiredFile(field: Field, mode: ServerTls['mode']): string {
  if (!isGiven(field)) field.invalid(`must name a file in mode ${mode}; or name a Secret in credentialName.`);
  return filePath(field);
}

function readVersion(field: Field): TlsVersion | undefined {
  const version = field.oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3');
  return version === 'TLS_AUTO' ? undefined : version;
}

function readCiphers(field: Field): readonly string[] {
  const ciphers = usable(field, cipherProblem);
  const problem = cipherListProblem(ciphers);
  if (problem !== undefined) field.invalid(problem);
  return ciphers;
}

/** SHA-256 hashes. */
function hashes(field: Field, form: RegExp, coding: string): readonly string[] {
  return field.list().map((element) => {
    const hash = element.string();
    if (!form.test(hash)) element.invalid(`${quote(hash)} is not a SHA-256 hash in ${coding}.`);
    return hash;
  });
}

/** Envoy joins them with commas, and rejects the listener if one is longer than TLS can say. */
function readAlpn(field: Field): readonly string[] {
  const found = new Set<string>();
  for (const element of field.list()) {
    const text = element.string();
    if (text === '' || text.includes(',') || Buffer.byteLength(text) > 255)
      element.invalid(`${quote(text)} is not a protocol; write one of 1 to 255 bytes without commas, such as h2.`);
    else found.add(text);
  }
  if (found.size <= mostProtocols) return [...found];
  field.invalid(`has ${found.size} protocols; at most ${mostProtocols} are allowed.`);
  return [];
}

/** Together they fit into the 64 KiB of the TLS extension, whatever they are. */
const mostProtocols = 100;

/** Without those that Envoy does not know, because it would reject the listener. Distinct. */
function usable(field: Field, problemOf: (name: string) => string | undefined): readonly string[] {
  const found = new Set<string>();
  for (const element of field.list()) {
    const text = element.string();
    const problem = problemOf(text);
    if (problem !== undefined) ineffective(element, problem);
    else if (text !== '') found.add(text);
  }
  return [...found];
}

function names(field: Field): readonly string[] {
  return field.strings().filter((name) => name !== '');
}

function isGiven(field: Field): boolean {
  const { value } = field;
  return field.isSet && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);
}

/** The object is served without what the field asks for. */
function ineffective(field: Field, why: string): void {
  field.findings.report(field.path, 'Ineffective', `${printed(field.value)}has no effect. ${why}`);
}

function printed(value: unknown): string {
  return typeof value === 'string' ? `${quote(value)} ` : 'The field ';
}
