import type { KindName } from '../api/kinds.ts';
import type { AccessAnswer, AccessQuestion } from '../cli/program.ts';
import { UsageError } from '../cli/usage-error.ts';
import { ClusterError } from '../kube/client/cluster-error.ts';
import type { SourceConfig } from '../config/config.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { answerOf, printEvent } from '../explain-access/answer.ts';
import { gatewayRequestOf } from '../explain-access/gateway.ts';
import { portOf, requestOf } from '../explain-access/request.ts';
import { findWorkload } from '../explain-access/workload.ts';
import { AllowedAddresses } from '../jwks/addresses.ts';
import { fetchText } from '../jwks/fetch-text.ts';
import { fetchKeySet, reasonOf } from '../jwks/key-sets.ts';
import { ApiError } from '../kube/client/api-error.ts';
import { readOnce } from '../kube/reading/read-once.ts';
import { keySetKey } from '../model/key-set.ts';
import type { JwtIssuer } from '../model/request-authentication.ts';
import { openSource } from '../serve/object-source.ts';
import { type OfflineMesh, buildOnce, findingsOf, load } from './offline.ts';
import { type GatewayAccess, judgeAtGateway } from '../judge/gateway.ts';
import { type Judgement, type WorkloadAccess, judge } from '../judge/judge.ts';

/** `fairlead explain access` */
export async function explainAccess(question: AccessQuestion, signal: AbortSignal): Promise<AccessAnswer> {
  const loaded = await loadSource(question.source, question.mesh.rootNamespace, signal);
  const { proxy, isRouter, ip, remarks } = findWorkload(loaded, question);
  const offline = buildOnce(loaded, question.mesh, ({ inputs }) => [inputs.proxies.write(proxy.stream, proxy)]);
  const { mesh } = offline;
  const existing = <Access>(access: Access | undefined): Access => {
    if (access !== undefined) return access;
    const found = mesh.proxies.get(proxy.stream);
    const why = found !== undefined && 'error' in found ? `would be refused: ${found.error}` : 'has no proxy';
    throw new UsageError(`--to: ${question.to.namespace}/${question.to.name} ${why}`);
  };
  const accessNow = (): WorkloadAccess => existing(mesh.access.atSidecar(proxy.stream));
  const gatewayNow = (): GatewayAccess => existing(mesh.access.atGateway(proxy.stream));
  if (question.token !== undefined) {
    const { issuers } = isRouter ? gatewayNow() : accessNow();
    remarks.push(...(await fetchKeys(offline, issuers, question.jwksAllowedNetworks, signal)));
  }
  const about = { ip, trustDomain: mesh.clusters.trustDomain() };
  const now = Math.floor(Date.now() / 1000);
  const judgeNow = (): Judgement => {
    if (isRouter) {
      const access = gatewayNow();
      return judgeAtGateway(access, gatewayRequestOf(question, access, about, remarks), now);
    }
    const access = accessNow();
    const port = portOf(question.port, access, remarks);
    return judge(access, requestOf(question, access, { port, ...about }, remarks), now);
  };
  const judgement = judgeNow();
  const namespaces = [question.mesh.rootNamespace, question.to.namespace];
  return {
    ...answerOf(judgement, loaded.locate),
    remarks: [...judgement.events.map((event) => printEvent(event, loaded.locate)), ...remarks],
    findings: findingsOf(loaded, mesh, false).filter(
      ({ object }) =>
        object !== undefined &&
        (policyKinds.includes(object.kind) || (isRouter && object.kind === 'Gateway')) &&
        namespaces.includes(object.namespace),
    ),
  };
}

const policyKinds = ['AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication'];

/** Kinds on which it depends what a workload accepts. */
const kindsRead: readonly KindName[] = [
  ...(['AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication', 'ConfigMap', 'Namespace', 'Pod'] as const),
  ...(['Service', 'ServiceEntry', 'WorkloadEntry', 'Sidecar', 'Gateway', 'VirtualService'] as const),
];

async function loadSource(source: SourceConfig, rootNamespace: string, signal: AbortSignal): Promise<LoadedDirectory> {
  const opened = openSource(source);
  if (opened.kind === 'directory') return load(opened.paths);
  try {
    const objects = await readOnce(opened.client, kindsRead, rootNamespace, signal);
    return { objects, others: [], reports: [], ignored: 0, locate: () => undefined };
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
