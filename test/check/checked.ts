import { printRef } from '../../src/api/object.ts';
import { createValidator } from '../../src/api/validate.ts';
import { readMeshSettings } from '../../src/config/config.ts';
import { loadTexts } from '../../src/directory/load.ts';
import { createProtos } from '../../src/envoy/encode/proto.ts';
import { checkLoaded } from '../../src/commands/offline.ts';

const validator = createValidator();
const protos = createProtos();
const mesh = readMeshSettings({ flags: {}, env: {} });

/** `fairlead check` of a file with these objects. */
export function check(
  documents: readonly string[],
  { complete = false, file = 'file.yaml' } = {},
): ReturnType<typeof checkLoaded> {
  const loaded = loadTexts([{ path: file, text: documents.join('\n---\n') }], validator);
  return checkLoaded(loaded, { complete, mesh }, protos);
}

/** What it says: `warning Gateway/edge/web spec.servers[0].hosts: ...`. */
export function checked(documents: readonly string[], options?: Parameters<typeof check>[1]): string[] {
  return check(documents, options).findings.map(({ severity, object, field, message }) => {
    const place = [object === undefined ? '' : printRef(object), field].filter((part) => part !== '').join(' ');
    return `${severity} ${place}: ${message}`;
  });
}

/** The same, without the sentences: what is found, and where. */
export function places(documents: readonly string[], options?: Parameters<typeof checked>[1]): string[] {
  return checked(documents, options).map((line) => line.slice(0, line.indexOf(': ')));
}

const object =
  (apiVersion: string, kind: string) =>
  (name: string, spec: string, metadata = '') => {
    const [namespace, own] = name.includes('/') ? name.split('/') : ['', name];
    const where = namespace === '' ? '' : `, namespace: ${namespace}`;
    return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${own}${where}${metadata}}\nspec: ${spec}`;
  };

/** Objects by `namespace/name` and spec; the third is more metadata, with a comma before it. */
export const service = object('v1', 'Service');
export const gateway = object('networking.istio.io/v1', 'Gateway');
export const virtualService = object('networking.istio.io/v1', 'VirtualService');
export const destinationRule = object('networking.istio.io/v1', 'DestinationRule');
export const serviceEntry = object('networking.istio.io/v1', 'ServiceEntry');
export const sidecar = object('networking.istio.io/v1', 'Sidecar');
export const peerAuthentication = object('security.istio.io/v1', 'PeerAuthentication');
export const requestAuthentication = object('security.istio.io/v1', 'RequestAuthentication');
export const authorizationPolicy = object('security.istio.io/v1', 'AuthorizationPolicy');

export function pod(name: string, labels: string, containers = '[{name: app, image: app}]', metadata = ''): string {
  const head = object('v1', 'Pod')(name, `{containers: ${containers}}`, `, labels: ${labels}${metadata}`);
  return `${head}\nstatus: {phase: Running, podIP: 10.0.0.9, conditions: [{type: Ready, status: "True"}]}`;
}

/** What makes Pods with these labels. */
export function deployment(name: string, labels: string, more = ''): string {
  const spec = `{template: {metadata: {labels: ${labels}}, spec: {containers: [{name: app, image: app}]${more}}}}`;
  return object('apps/v1', 'Deployment')(name, spec);
}

export function secret(name: string, entries: string): string {
  const [namespace, own] = name.split('/');
  return `apiVersion: v1\nkind: Secret\nmetadata: {name: ${own}, namespace: ${namespace}}\nstringData: ${entries}`;
}
