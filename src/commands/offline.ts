/**
 * `check` and `translate`: the graph of a server, run once on files. What other commands do is beside it: `explain.ts`;
 * `explain-access.ts` (a question to the judge in `judge/`, decision 0060); `record.ts` and `replay.ts` (what a
 * server computes from, `debug/recorder.ts`, and the same graph fed with it); `replica-status.ts` (`status` and `clusters`:
 * questions to running servers); `published-rotation.ts` (`identity`); `endpoint-release.ts` (`release`);
 * `object-check.ts` (`check` of one object, for the webhook).
 */
import { ContentHasher } from '../ads/store/content-hash.ts';
import { Store } from '../ads/store/store.ts';
import type { Secret } from '../api/core.ts';
import type { Gateway } from '../api/gen/gateway.gen.ts';
import { kindOf } from '../api/kinds.ts';
import { type KubernetesObject, printRef, refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { createValidator } from '../api/validate.ts';
import { systemClock } from '../base/clock.ts';
import { remarksOnAmbient } from '../check/ambient.ts';
import { remarksOnFiles } from '../check/files.ts';
import { routersOf } from '../check/routers.ts';
import { SaidByFiles } from '../check/said-by-files.ts';
import { sidecarsOf } from '../check/sidecars.ts';
import { Templates } from '../check/templates.ts';
import { asRunning, workloadsOf } from '../check/workloads.ts';
import { entriesOfSecret } from '../credentials/entries.ts';
import { type CredentialKey, parseCredentialKey } from '../model/credential.ts';
import { CredentialStore } from '../credentials/credential-store.ts';
import { Graph, type Write } from '../cache/graph.ts';
import type { ConnectedProxy } from '../ads/types.ts';
import type { EncodedResource } from '../ads/store/resource.ts';
import type {
  CheckRequest,
  CheckResult,
  Finding,
  ResourceJson,
  TranslateRequest,
  Translation,
} from '../cli/program.ts';
import type { MeshSettings } from '../config/config.ts';
import { type LoadedDirectory, loadDirectory } from '../directory/load.ts';
import { Encoder } from '../envoy/encode/encoder.ts';
import { type Protos, createProtos } from '../envoy/encode/proto.ts';
import { Trace } from '../envoy/encode/trace.ts';
import { explain } from './explain.ts';
import { type Mesh, buildMesh } from '../mesh.ts';
import { ONE } from '../mesh/inputs.ts';
import type { ResolvedProxy } from '../mesh/clients/proxies.ts';
import { printSelector, selects } from '../model/labels.ts';
import { allocateAll } from '../engine/address-allocator.ts';
import { Discovery } from '../sources/discovery.ts';
import { NamespaceFilter, leftOutMessage } from '../sources/namespace-filter.ts';
import { credentialListener } from '../engine/object-listeners.ts';
import { ObjectWriter } from '../engine/object-writer.ts';
import { type ServedType, servedTypeNames } from '../envoy/encode/served-types.ts';
import { jsonOf, snapshotOf } from '../debug/snapshot.ts';

/** The mesh of some objects, computed once. */
export interface OfflineMesh {
  readonly loaded: LoadedDirectory;
  readonly mesh: Mesh;
  readonly store: Store;
  readonly protos: Protos;
  /** Objects in namespaces that no discovery selector matches. */
  readonly leftOut: readonly KubernetesObject[];
}

interface BuildOptions {
  readonly trace?: Trace | undefined;
  readonly protos?: Protos;
  /** Secrets that proxies need, and that are not in the files, do not exist. */
  readonly isComplete?: boolean;
}

export function buildOnce(
  loaded: LoadedDirectory,
  settings: MeshSettings,
  more: (mesh: Mesh) => Write[],
  { trace, protos = createProtos(), isComplete = false }: BuildOptions = {},
): OfflineMesh {
  const graph = new Graph();
  const mesh = buildMesh(graph, new Encoder(protos, { trace }));
  const store = new Store(new ContentHasher([0, 0]));
  graph.observe((draft) => store.apply(mesh.publicationOf(draft)));
  const writes: Write[] = [mesh.inputs.options.write(ONE, { ...settings, assumesCredentials: true }), ...more(mesh)];
  const credentials = new CredentialStore({
    write: (key, credential) => writes.push(mesh.inputs.credentials.write(key, credential)),
    clock: systemClock,
    signal: AbortSignal.abort(),
  });
  const writer = new ObjectWriter({
    source: settings.clusterId,
    revision: undefined,
    inputs: mesh.inputs,
    listeners: [credentialListener(credentials)],
    write: (write) => writes.push(write),
  });
  const { rootNamespace } = settings;
  const objects = new NamespaceFilter({
    discovery: new Discovery(),
    sink: writer,
    own: { rootNamespace, namespace: undefined },
  });
  for (const [kind, found] of loaded.objects) objects.replace(kind, found);
  const wanted = new Set<CredentialKey>();
  graph.follow(mesh.wanted.credentials, (changes) => {
    for (const { key, after } of changes) if (after !== undefined) wanted.add(key);
  });
  graph.commit(writes);
  if (isComplete) {
    writes.length = 0;
    const unread = unusable(loaded);
    for (const key of wanted)
      if (!credentials.has(key) && !unread.has(printRef(parseCredentialKey(key)))) credentials.found(key, undefined);
    graph.commit(writes);
  }
  const { allocated } = mesh.inputs;
  graph.commit(
    Array.from(allocateAll(mesh.wanted.addresses.entries()), ([key, addresses]) => allocated.write(key, addresses)),
  );
  // Without a server a bug would go unnoticed, and findings would be missing.
  for (const { error } of graph.failures.values()) throw error;
  return { loaded, mesh, store, protos, leftOut: [...objects.kept()] };
}

export function load(paths: readonly string[]): Promise<LoadedDirectory> {
  return loadDirectory(paths, createValidator());
}

/** `fairlead check`: what is wrong with the files and the objects in them. */
export async function checkFiles(request: CheckRequest): Promise<CheckResult> {
  return checkLoaded(await load(request.paths), request);
}

/** The same of what is already read. */
export function checkLoaded(
  files: LoadedDirectory,
  request: Omit<CheckRequest, 'paths'>,
  protos = createProtos(),
): CheckResult {
  const { clusterId, rootNamespace } = request.mesh;
  const workloads = workloadsOf(files, clusterId);
  const running = asRunning(files, workloads);
  const proxies = [...routersOf(running, clusterId), ...sidecarsOf(running, clusterId)];
  const connected = ({ inputs }: Mesh): Write[] => proxies.map((proxy) => inputs.proxies.write(proxy.stream, proxy));
  const isComplete = request.complete || hasCertificates(files);
  const { mesh, leftOut } = buildOnce(running, request.mesh, connected, { protos, isComplete });
  const usable = [...files.objects.values()].reduce((sum, found) => sum + found.length, 0);
  const templates = workloads.filter(({ ref }) => ref.kind !== 'Pod').length;
  const objects = usable + templates + unusable(files).size;
  const remarks = [
    ...leftOut.flatMap((object) => remarkOnNamespace(object, request.mesh)),
    ...remarksOnAmbient(files, workloads, clusterId),
    ...remarksOnFiles(files, workloads, { source: clusterId, rootNamespace, complete: request.complete }),
  ];
  const findings = findingsOf(files, mesh, request.complete, remarks);
  return { findings, objects, ignored: files.ignored - templates };
}

/** Whoever keeps Secrets with certificates in files keeps all of them there. */
function hasCertificates({ objects }: LoadedDirectory): boolean {
  return (objects.get('Secret') ?? []).some((secret) => Object.keys(entriesOfSecret(secret as Secret)).length > 0);
}

/** Why somebody's object means nothing. */
function remarkOnNamespace(object: KubernetesObject, { clusterId, rootNamespace }: MeshSettings): readonly Problem[] {
  if (kindOf(object.apiVersion, object.kind)?.custom !== true) return [];
  const message = leftOutMessage(object.metadata.namespace ?? '', rootNamespace);
  return [{ object: refOf(clusterId, object), field: '', reason: 'Ineffective', message }];
}

/** Objects for which the files contain nothing valid. */
function unusable({ reports, locate }: LoadedDirectory): ReadonlySet<string> {
  const named = reports.flatMap(({ object }) => object ?? []);
  return new Set(named.filter((object) => locate(object, '') === undefined).map(printRef));
}

/** `fairlead translate`: everything that one proxy would hold. */
export async function translateFiles(request: TranslateRequest): Promise<Translation> {
  const stream = 'translate';
  const connected = ({ inputs }: Mesh): Write[] => [
    inputs.proxies.write(stream, withIdentity({ stream, ...request.proxy }, request.mesh)),
  ];
  const trace = request.explain === true ? new Trace() : undefined;
  const { loaded, mesh, store, protos } = buildOnce(await load(request.paths), request.mesh, connected, { trace });
  const snapshot = snapshotOf(store, mesh.worldOf(stream), protos);
  const each = <T>(print: (resource: EncodedResource) => T) =>
    Object.fromEntries(servedTypeNames.map((type) => [type, snapshot[type].map(print)])) as Record<ServedType, T[]>;
  const { locate } = loaded;
  return {
    resources: each((resource) => jsonOf(protos, resource) as ResourceJson),
    ...(trace && { explained: each((resource) => explain(resource, { trace, protos, locate })) }),
    findings: findingsOf(loaded, mesh, false),
    ...remarkOnNode(mesh.proxies.get(stream), loaded),
  };
}

/** As if the proxy had proven what its node says. */
function withIdentity(proxy: ConnectedProxy, { clusterId: cluster }: MeshSettings): ConnectedProxy {
  const { NAMESPACE: namespace, SERVICE_ACCOUNT: account } = proxy.metadata;
  if (typeof namespace !== 'string' || namespace === '') return proxy;
  const serviceAccount = typeof account === 'string' && account !== '' ? account : 'default';
  return { ...proxy, identity: { trustDomain: '', namespace, serviceAccount, cluster, tenant: namespace } };
}

/** Why the proxy gets nothing. */
function remarkOnNode(
  view: ResolvedProxy | undefined,
  { objects }: LoadedDirectory,
): Pick<Translation, 'refusal' | 'remark'> {
  if (view === undefined) return {};
  if ('error' in view) return { refusal: `the proxy would be refused: ${view.error}` };
  if (view.router === undefined) return {};
  const { labels } = view.router;
  const selectors = (objects.get('Gateway') ?? []).map((gateway) => (gateway as Gateway).spec.selector ?? {});
  if (selectors.some((selector) => selects(selector, labels))) return {};
  if (selectors.length === 0)
    return { remark: 'a router gets its listeners from Gateways, and the files contain none' };
  const printed = [...new Set(selectors.map(printSelector))].sort();
  const shown = printed.slice(0, SHOWN).join('; ') + (printed.length > SHOWN ? '; ...' : '');
  const own = Object.keys(labels).length === 0 ? 'it has none' : `it has ${printSelector(labels)}`;
  const how = `Give the labels with --labels ${printed[0]!}, or the node with --node FILE`;
  return { remark: `no Gateway selects the labels of the proxy: ${own}, and Gateways select ${shown}. ${how}` };
}

/** At most this many selectors are named. */
const SHOWN = 5;

/** What is wrong with the objects that were loaded, in the order of the files. */
export function findingsOf(
  loaded: Pick<LoadedDirectory, 'reports' | 'locate'>,
  mesh: Mesh,
  complete: boolean,
  more: readonly Problem[] = [],
): Finding[] {
  // A policy with errors is in force, and is read twice.
  const said = new SaidByFiles(loaded.reports);
  const templates = new Templates(mesh);
  const problems = [...[...mesh.problems.byObject.entries()].flatMap(([, found]) => found), ...more].flatMap(
    (problem) => (said.has(problem) ? [] : templates.nameIn(problem)),
  );
  return [
    ...loaded.reports.map((report) => ({ ...report, reason: 'Unreadable' })),
    ...problems.map((problem) => ({
      ...problem,
      ...loaded.locate(problem.object, problem.field),
      severity: severityOf(problem, complete),
    })),
  ].sort((a, b) => compare(a.file, b.file) || (a.line ?? 0) - (b.line ?? 0) || numeric.compare(a.field, b.field));
}

/** What the files refer to may exist elsewhere; what has no effect does no harm. */
function severityOf({ reason }: Problem, complete: boolean): Finding['severity'] {
  if (reason === 'UnsupportedField' || reason === 'Ineffective' || reason === 'TooBroad') return 'warning';
  return reason === 'RefNotFound' && !complete ? 'warning' : 'error';
}

/** Sorts the tenth element of a list after the second. */
const numeric = new Intl.Collator('en', { numeric: true });

const compare = (a = '', b = ''): number => (a < b ? -1 : a > b ? 1 : 0);
