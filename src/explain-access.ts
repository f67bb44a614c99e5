import type { ConnectedProxy } from './ads/types.ts';
import type { Pod, Service } from './api/core.ts';
import type { Gateway } from './api/gen/gateway.gen.ts';
import type { WorkloadEntry } from './api/gen/workload-entry.gen.ts';
import type { KindName, SourceKindName } from './api/kinds.ts';
import type { KubernetesObject, ObjectRef } from './api/object.ts';
import type { AccessAnswer, AccessQuestion } from './cli/program.ts';
import { UsageError } from './cli/usage-error.ts';
import type { SourceConfig } from './config/config.ts';
import type { LoadedDirectory, Locate } from './directory/load.ts';
import { printSource } from './explain.ts';
import { AllowedAddresses } from './jwks/addresses.ts';
import { fetchText } from './jwks/fetch-text.ts';
import { fetchKeySet, reasonOf } from './jwks/key-sets.ts';
import { ApiError } from './kube/api-error.ts';
import { readOnce } from './kube/read-once.ts';
import { keySetKey } from './model/key-set.ts';
import { type Labels, printSelector, selects } from './model/labels.ts';
import type { Source } from './model/provenance.ts';
import type { JwtIssuer } from './model/request-authentication.ts';
import { openSource } from './object-source.ts';
import { type OfflineMesh, buildOnce, findingsOf, load } from './offline.ts';
import { workloadName } from './reconcilers/core/workload.ts';
import {
  type AccessEvent,
  type Denial,
  type Judgement,
  type WorkloadAccess,
  judge,
  modeOf,
} from './settle/access/judge.ts';
import type { AccessRequest, HttpRequest } from './settle/access/request.ts';
import { claimedIssuer } from './settle/access/tokens.ts';

/** `fairlead explain access` */
export async function explainAccess(question: AccessQuestion, signal: AbortSignal): Promise<AccessAnswer> {
  const loaded = await loadSource(question.source, question.mesh.rootNamespace, signal);
  const { proxy, ip, remarks } = findWorkload(loaded, question.to);
  const offline = buildOnce(loaded, question.mesh, ({ inputs }) => [inputs.proxies.write(proxy.stream, proxy)]);
  const { mesh } = offline;
  const accessNow = (): WorkloadAccess => {
    const found = mesh.accessOf(proxy.stream);
    if (found === undefined) throw new UsageError(`--to: ${question.to.namespace}/${question.to.name} has no sidecar`);
    return found;
  };
  if (question.token !== undefined)
    remarks.push(...(await fetchKeys(offline, accessNow().issuers, question.jwksAllowedNetworks, signal)));
  const access = accessNow();
  const port = portOf(question.port, access, remarks);
  const request = requestOf(question, access, { port, ip, trustDomain: mesh.trustDomain() }, remarks);
  const judgement = judge(access, request, Math.floor(Date.now() / 1000));
  const namespaces = [question.mesh.rootNamespace, question.to.namespace];
  return {
    ...answerOf(judgement, loaded.locate),
    remarks: [...judgement.events.map((event) => printEvent(event, loaded.locate)), ...remarks],
    findings: findingsOf(loaded, mesh, false).filter(
      ({ object }) =>
        object !== undefined && policyKinds.includes(object.kind) && namespaces.includes(object.namespace),
    ),
  };
}

const policyKinds = ['AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication'];

/** Those on which it depends what a workload accepts. */
const kindsRead: readonly KindName[] = [
  ...(['AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication', 'ConfigMap', 'Namespace', 'Pod'] as const),
  ...(['Service', 'ServiceEntry', 'WorkloadEntry', 'Sidecar', 'Gateway'] as const),
];

async function loadSource(source: SourceConfig, rootNamespace: string, signal: AbortSignal): Promise<LoadedDirectory> {
  const opened = openSource(source);
  if (opened.kind === 'directory') return load(opened.paths);
  try {
    const objects = await readOnce(opened.client, kindsRead, rootNamespace, signal);
    return { objects, reports: [], ignored: 0, locate: () => undefined };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const message = `the cluster cannot be read: ${error.message}; check --kubeconfig and --context, and that you may list what policies depend on, or use --directory`;
    throw Object.assign(new Error(message, { cause: error }), { code: 'CLUSTER' });
  } finally {
    await opened.client.close();
  }
}

interface FoundWorkload {
  readonly proxy: ConnectedProxy;
  /** Its address, if it is known. */
  readonly ip: string | undefined;
  /** What was assumed. */
  readonly remarks: string[];
}

/** By its own name, by that of its workload (such as a Deployment), or by a Service that selects it. */
function findWorkload(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  { namespace, name }: AccessQuestion['to'],
): FoundWorkload {
  const all = <T extends KubernetesObject>(kind: SourceKindName): readonly T[] =>
    ((objects.get(kind) ?? []) as readonly T[]).filter(({ metadata }) => (metadata.namespace ?? '') === namespace);
  const [pods, entries] = [all<Pod>('Pod'), all<WorkloadEntry>('WorkloadEntry')];
  const isNamed = ({ metadata }: KubernetesObject): boolean => metadata.name === name;
  const service = all<Service>('Service').find(isNamed);
  const selector = service?.spec?.selector;
  const isSelected = (labels: Labels): boolean => selector !== undefined && selects(selector, labels);
  const pod =
    pods.find(isNamed) ??
    pods.find((one) => workloadName(one) === name) ??
    (entries.some(isNamed) ? undefined : pods.find(({ metadata }) => isSelected(metadata.labels ?? {})));
  const entry =
    pod === undefined ? (entries.find(isNamed) ?? entries.find((one) => isSelected(labelsOf(one)))) : undefined;
  const found = pod ?? entry;
  const labels = pod?.metadata.labels ?? (entry === undefined ? selector : labelsOf(entry));
  if (labels === undefined || (found === undefined && service === undefined))
    throw new UsageError(notFound([...pods, ...entries], namespace, name));
  const gateways = (objects.get('Gateway') ?? []) as readonly Gateway[];
  const gateway = gateways.find(({ spec }) => selectsSome(spec.selector, labels));
  const remarks: string[] = [];
  if (gateway !== undefined)
    throw new UsageError(
      `--to: ${namespace}/${name} is a gateway (Gateway/${gateway.metadata.namespace ?? ''}/${gateway.metadata.name} selects it); only sidecars can be explained`,
    );
  if (found === undefined)
    remarks.push(
      `there is no Pod or WorkloadEntry for Service/${namespace}/${name}; a workload with the labels ${printSelector(labels)} was assumed`,
    );
  else if (!isNamed(found))
    remarks.push(`${found.kind}/${namespace}/${found.metadata.name} stands for ${namespace}/${name}`);
  if (pod !== undefined && labels['security.istio.io/tlsMode'] === undefined)
    remarks.push(
      `Pod/${namespace}/${pod.metadata.name} has no label security.istio.io/tlsMode; if it has no sidecar, nothing is enforced`,
    );
  const ip = pod?.status?.podIP ?? entry?.spec.address;
  return { proxy: sidecarOf(namespace, found?.metadata.name ?? name, labels, ip), ip, remarks };
}

function labelsOf({ spec, metadata }: WorkloadEntry): Labels {
  return { ...spec.labels, ...metadata.labels };
}

/** An empty selector selects all proxies, but makes no gateways of sidecars. */
function selectsSome(selector: Labels = {}, labels: Labels): boolean {
  return Object.keys(selector).length > 0 && selects(selector, labels);
}

function notFound(workloads: readonly KubernetesObject[], namespace: string, name: string): string {
  const most = 5;
  const names = [...new Set(workloads.map(({ metadata }) => metadata.name))].sort();
  const shown = names.slice(0, most).join(', ') + (names.length > most ? ', ...' : '');
  const there = names.length === 0 ? `the namespace has none` : `the namespace has ${shown}`;
  return `--to: no Pod, workload, WorkloadEntry or Service ${name} in namespace ${namespace}: ${there}`;
}

/** As Istio's agent would connect it. */
function sidecarOf(namespace: string, name: string, labels: Labels, ip = '192.0.2.1'): ConnectedProxy {
  return {
    stream: 'explain',
    nodeId: `sidecar~${ip}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    nodeCluster: '',
    metadata: { NAMESPACE: namespace, LABELS: labels, INSTANCE_IPS: ip, ISTIO_VERSION: '1.30.0' },
    locality: { region: '', zone: '', subZone: '' },
    build: '',
    extensions: [],
  };
}

/** Puts the keys that are fetched into the mesh. What could not be fetched. */
async function fetchKeys(
  { mesh }: OfflineMesh,
  issuers: readonly JwtIssuer[],
  allowedNetworks: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const allowed = new AllowedAddresses(allowedNetworks);
  const remarks: string[] = [];
  for (const { rule } of issuers) {
    if (rule.keys.kind !== 'fetched') continue;
    const { source } = rule.keys;
    const ended = AbortSignal.any([signal, AbortSignal.timeout(source.timeout)]);
    try {
      const found = await fetchKeySet(source, (url, options) => fetchText(url, { ...options, allowed }), ended);
      mesh.graph.commit([mesh.inputs.keySets.write(keySetKey(source), found)]);
    } catch (error) {
      const reason = ended.aborted ? `no answer within ${source.timeout} ms` : reasonOf(error);
      remarks.push(
        `the keys at ${source.uri || source.issuer} could not be fetched (${reason}); a server may have them`,
      );
    }
  }
  return remarks;
}

function portOf(asked: number | undefined, { targets }: WorkloadAccess, remarks: string[]): number {
  const served = targets.map(({ port }) => port);
  if (asked === undefined) {
    if (served.length === 1) return served[0]!;
    const which = served.length === 0 ? 'no Service names a port of the workload' : `it serves ${served.join(', ')}`;
    throw new UsageError(`specify --port: ${which}`);
  }
  if (served.includes(asked)) return asked;
  const [behind, ...others] = targets.filter(({ services }) => services.some(({ port }) => port === asked));
  if (others.length > 0)
    throw new UsageError(
      `--port: ${asked} is a port of several Services; specify that of the workload: ${served.join(', ')}`,
    );
  if (behind !== undefined) {
    remarks.push(`port ${asked} of Service ${behind.services[0]!.host} is port ${behind.port} of the workload`);
    return behind.port;
  }
  remarks.push(`no Service leads to port ${asked} of the workload`);
  return asked;
}

function requestOf(
  question: AccessQuestion,
  access: WorkloadAccess,
  { port, ip, trustDomain }: { readonly port: number; readonly ip: string | undefined; readonly trustDomain: string },
  remarks: string[],
): AccessRequest {
  const { from, sourceIp, method, path, host, headers, token } = question;
  const asked = from === undefined || from.startsWith('spiffe://') ? from : identityOf(from, trustDomain);
  const mode = modeOf(access, port);
  // Clients of the mesh know what the workload accepts.
  const peer = mode === 'DISABLE' ? undefined : asked;
  if (asked !== peer) remarks.push(`port ${port} accepts no mutual TLS, so the request has no identity`);
  const target = access.targets.find((one) => one.port === port);
  const http = withToken(
    { method, path, host: host ?? { unknown: 'the host, which --host specifies' }, headers },
    token,
    access.issuers,
  );
  return {
    peer,
    port,
    sourceIp: sourceIp ?? { unknown: 'the address of the client, which --source-ip specifies' },
    destinationIp: ip ?? { unknown: 'the address of the workload, which is not known' },
    sni: peer === undefined ? '' : { unknown: 'the server name in the TLS handshake, which is not known' },
    http: target?.protocol === 'UDP' ? undefined : http,
  };
}

function identityOf(account: string, trustDomain: string): string {
  const [namespace, name] = account.split('/');
  return `spiffe://${trustDomain}/ns/${namespace}/sa/${name}`;
}

/** Where the rule for its issuer expects it. */
function withToken(request: HttpRequest, token: string | undefined, issuers: readonly JwtIssuer[]): HttpRequest {
  if (token === undefined) return request;
  const issuer = claimedIssuer(token);
  const {
    fromHeaders = [],
    fromParams = [],
    fromCookies = [],
  } = issuers.find(({ rule }) => rule.issuer === issuer)?.rule ?? {};
  const withHeader = (name: string, value: string): HttpRequest => ({
    ...request,
    headers: [...request.headers, [name, value]],
  });
  if (fromHeaders[0] !== undefined) return withHeader(fromHeaders[0].name, fromHeaders[0].prefix + token);
  if (fromParams[0] !== undefined) {
    const param = `${encodeURIComponent(fromParams[0])}=${encodeURIComponent(token)}`;
    return { ...request, path: `${request.path}${request.path.includes('?') ? '&' : '?'}${param}` };
  }
  if (fromCookies[0] !== undefined) return withHeader('cookie', `${fromCookies[0]}=${token}`);
  return withHeader('authorization', `Bearer ${token}`);
}

function answerOf({ verdict }: Judgement, locate: Locate): Omit<AccessAnswer, 'remarks' | 'findings'> {
  const print = (source: Source | undefined): readonly string[] => (source ? [printSource(source, locate)] : []);
  switch (verdict.kind) {
    case 'allowed': {
      const reason = verdict.by === undefined ? 'no policy is against it' : 'a rule allows it, and none denies it';
      return { verdict: 'allowed', reason, by: print(verdict.by) };
    }
    case 'unknown':
      return { verdict: 'unknown', reason: `it depends on ${verdict.dependsOn}`, by: [] };
    case 'denied': {
      const { answer, why } = verdict;
      const by =
        why.kind === 'notAllowed'
          ? why.policies.flatMap((object) => print(whole(object)))
          : print('by' in why ? why.by : undefined);
      return { verdict: 'denied', answer, reason: printDenial(why), by };
    }
  }
}

const whole = (object: ObjectRef): Source => ({ object, field: 'spec.rules' });

function printDenial(why: Denial): string {
  switch (why.kind) {
    case 'rule':
      return 'a rule denies it';
    case 'provider':
      return 'a rule asks an extension provider that cannot be asked';
    case 'notAllowed':
      return why.policies.length === 0
        ? 'the policies are too large for a listener, so that nothing is allowed'
        : 'no rule of the ALLOW policies matches';
    case 'token':
      return why.reason;
    case 'plaintext':
      return 'the port accepts only mutual TLS, and the request is in plaintext';
    case 'mutualTls':
      return 'the port accepts no mutual TLS';
    case 'trustDomain':
      return "the client's trust domain is neither that of the mesh nor one of its aliases";
    case 'port':
      return 'the workload accepts nothing on the port';
  }
}

function printEvent(event: AccessEvent, locate: Locate): string {
  const by = event.by === undefined ? '' : `: ${printSource(event.by, locate)}`;
  switch (event.kind) {
    case 'asks':
      return `asks the extension provider ${event.provider}, which may deny it${by}`;
    case 'audit':
      return `is audited${by}`;
    case 'dryRun':
      return `a dry run ${event.answer} it${by}`;
  }
}
