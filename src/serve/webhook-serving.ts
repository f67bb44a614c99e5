import type { ConfigMap } from '../api/core.ts';
import { isObject, type Json, textOf } from '../api/json.ts';
import { kindOf } from '../api/kinds.ts';
import { objectKey } from '../api/object.ts';
import type { Validate } from '../api/validate.ts';
import type { Clock } from '../base/clock.ts';
import type { Config, WebhookConfig } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { leftOutMessage } from '../sources/namespace-filter.ts';
import type { Protos } from '../envoy/encode/proto.ts';
import { loadInjection } from '../injection/configuration.ts';
import { createInjector } from '../injection/injector.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { FreshNamespaces } from '../kube/reading/fresh-namespaces.ts';
import { PROBE_LABEL } from '../kube/writing/injection-probe.ts';
import { ownValue } from '../model/own-value.ts';
import { createObjectCheck } from '../commands/object-check.ts';
import { MESH_CONFIG } from '../api/mesh-config-names.ts';
import type { OtherClusters } from '../other-clusters/other-clusters.ts';
import type { LogBudget } from '../ops/log-budget.ts';
import type { WebhookFigures } from '../ops/metric-sources.ts';
import type { AdmissionRequest, Verdict } from '../webhooks/admission-review.ts';
import { type Injection, type InjectionOutcome, injectPod, labelsIn } from '../webhooks/injecting.ts';
import { InjectionFiles, type LoadInjection } from '../webhooks/injection-files.ts';
import { failingSoft, validate } from '../webhooks/validating.ts';
import { type Webhook, type WebhookServer, serveWebhooks } from '../webhooks/webhook-server.ts';
import { readDocument } from '../yaml/document.ts';

/** The port on which the API server asks. */
export interface WebhookServing extends Pick<WebhookServer, 'port' | 'present'> {
  readonly figures: () => WebhookFigures;
  /** Calls back with the milliseconds that each admission of a Pod took. */
  onInjected(measured: (ms: number) => void): void;
  /** Reads namespaces of other clusters there. */
  accept(others: OtherNamespaces): void;
}

/** See `FreshNamespaces`. */
export type OtherNamespaces = Pick<OtherClusters, 'readNamespace'>;

export interface WebhookServingOptions {
  readonly config: Config;
  readonly webhooks: WebhookConfig;
  readonly client: KubeClient;
  readonly engine: Engine;
  readonly protos: Protos;
  readonly validate: Validate;
  readonly log: LogBudget;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Rejects with a ListenError if it cannot listen on the address. */
export async function startWebhooks(options: WebhookServingOptions): Promise<WebhookServing> {
  const { config, webhooks, engine, protos, log, clock, signal } = options;
  const injections: Record<InjectionOutcome, number> = { injected: 0, untouched: 0, refused: 0 };
  const validations = new Map<
    string,
    { readonly group: string; readonly resource: string; passed: number; failed: number }
  >();
  let measured: (ms: number) => void = () => undefined;
  const files =
    webhooks.injectionDirectory === undefined
      ? undefined
      : new InjectionFiles({ directory: webhooks.injectionDirectory, load, clock, log, signal });
  let unchecked = 0;
  const check = failingSoft(createObjectCheck(config.mesh, protos, options.validate), (err) => {
    unchecked++;
    log.error('An object was admitted without a check; please report it', { err });
  });

  const validateObject: Webhook = (request) => {
    const verdict = validate(request, check);
    const kind = kindOf(textOf(request.object?.['apiVersion']), textOf(request.object?.['kind']));
    if (kind?.custom === true) {
      const counts = validations.get(kind.name) ?? { group: kind.group, resource: kind.plural, passed: 0, failed: 0 };
      counts[verdict.allowed ? 'passed' : 'failed']++;
      validations.set(kind.name, counts);
    }
    if (!verdict.allowed) log.info('Object refused', { object: nameOf(request), problem: verdict.message });
    const isLeftOut = kind?.custom === true && engine.objects.leavesOut(request.namespace);
    if (!verdict.allowed || !isLeftOut) return verdict;
    const { warnings = [] } = verdict;
    return { ...verdict, warnings: [...warnings, leftOutMessage(request.namespace, config.mesh.rootNamespace)] };
  };

  let others: OtherNamespaces | undefined;
  const surroundingsFor = injectionSurroundings(options, files, () => others);
  const injected = (request: AdmissionRequest, began: number, { verdict, outcome }: Injection): Verdict => {
    injections[outcome]++;
    measured(clock.now() - began);
    if (!verdict.allowed) log.warn('Pod refused', { object: nameOf(request), problem: verdict.message });
    return verdict;
  };
  const inject: Webhook = (request, path, caller) => {
    if (isProbe(request)) return { allowed: false, message: 'this control plane is reached' };
    const began = clock.now();
    const injection = injectPod(request, path, surroundingsFor(caller));
    if (!(injection instanceof Promise)) return injected(request, began, injection);
    return injection.then((decide) => (again) => injected(again, began, decide(again)));
  };

  const server = await serveWebhooks({
    address: webhooks.address,
    webhooks: new Map([['validate', validateObject], ...(files === undefined ? [] : [['inject', inject] as const])]),
    draining: () => engine.draining(),
    log,
    signal,
  });
  // A Pod that comes first waits for it.
  await files?.look();
  void files?.follow();
  return {
    port: server.port,
    present: server.present,
    figures: () => ({
      unanswered: new Map([...server.unanswered, ...(unchecked > 0 ? [['unchecked', unchecked] as const] : [])]),
      validations: validations.values(),
      ...(files !== undefined && { injections, templateProblems: files.problems.length }),
    }),
    onInjected: (observer) => (measured = observer),
    accept: (accepted) => (others = accepted),
  };
}

const load: LoadInjection = (files) => {
  const loaded = loadInjection(files);
  return 'config' in loaded ? { injector: createInjector(loaded.config) } : loaded;
};

/** By the address of the caller. */
function injectionSurroundings(
  { config, engine, client, clock, signal }: WebhookServingOptions,
  files: InjectionFiles | undefined,
  others: () => OtherNamespaces | undefined,
): (caller: string) => Parameters<typeof injectPod>[2] {
  const { inputs } = engine.mesh;
  const { clusterId, clusterAliases, rootNamespace } = config.mesh;
  const fresh = new FreshNamespaces(client, clock, signal);
  const meshConfig = new ParsedMeshConfig();
  // As for proxies: a name that is not known means nothing.
  const remoteOf = (name = ''): string | undefined =>
    inputs.remoteClusters.get(ownValue(clusterAliases, name) ?? name)?.id;
  return (caller) => ({
    injector: () => files?.injector,
    meshConfig(cluster) {
      const map: ConfigMap | undefined = inputs.lastGood.get(objectKey(clusterId, rootNamespace, MESH_CONFIG));
      const config = meshConfig.of(map?.data?.['mesh'] ?? '');
      const remote = remoteOf(cluster);
      return remote === undefined ? config : { ...config, trustDomain: engine.trustDomainOf(remote) };
    },
    proxyConfigsOf: (pod) => engine.mesh.proxyConfigsOf(pod),
    labelsOf(namespace, cluster) {
      const known = inputs.objects.Namespace.get(objectKey(remoteOf(cluster) ?? clusterId, '', namespace));
      return known && (known.metadata.labels ?? {});
    },
    async freshLabelsOf(namespace, cluster) {
      const remote = remoteOf(cluster);
      const found = await (remote === undefined
        ? fresh.read(namespace, caller)
        : others()?.readNamespace(remote, namespace, caller));
      return found && labelsIn(found);
    },
  });
}

/** Whether a control plane asks if the API server reaches it. Pods cannot ask. */
function isProbe({ kind, object }: AdmissionRequest): boolean {
  return kind !== 'Pod' && Object.hasOwn(labelsIn(object), PROBE_LABEL);
}

/** Parses a text once. */
class ParsedMeshConfig {
  #text = '';
  #value: Json = {};

  of(text: string): Json {
    if (text !== this.#text) {
      const content = readDocument(text);
      this.#value = 'value' in content && isObject(content.value) ? content.value : {};
      this.#text = text;
    }
    return this.#value;
  }
}

function nameOf({ kind, namespace, name, object }: AdmissionRequest): string {
  const metadata: Json = isObject(object?.['metadata']) ? object['metadata'] : {};
  const generated = textOf(metadata['generateName']);
  return `${kind}/${namespace}/${name === '' ? `${generated}*` : name}`;
}
