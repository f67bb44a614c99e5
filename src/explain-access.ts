import type { KindName } from './api/kinds.ts';
import type { AccessAnswer, AccessQuestion } from './cli/program.ts';
import { UsageError } from './cli/usage-error.ts';
import { ClusterError } from './cluster-error.ts';
import type { SourceConfig } from './config/config.ts';
import type { LoadedDirectory } from './directory/load.ts';
import { answerOf, printEvent } from './explain-access/answer.ts';
import { portOf, requestOf } from './explain-access/request.ts';
import { findWorkload } from './explain-access/workload.ts';
import { AllowedAddresses } from './jwks/addresses.ts';
import { fetchText } from './jwks/fetch-text.ts';
import { fetchKeySet, reasonOf } from './jwks/key-sets.ts';
import { ApiError } from './kube/api-error.ts';
import { readOnce } from './kube/read-once.ts';
import { keySetKey } from './model/key-set.ts';
import type { JwtIssuer } from './model/request-authentication.ts';
import { openSource } from './object-source.ts';
import { type OfflineMesh, buildOnce, findingsOf, load } from './offline.ts';
import { type WorkloadAccess, judge } from './settle/access/judge.ts';

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
    throw new ClusterError(message, { cause: error });
  } finally {
    await opened.client.close();
  }
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
        `the keys at ${source.uri || source.issuer} could not be fetched (${reason}); a running server may have them`,
      );
    }
  }
  return remarks;
}
