import { compareAge } from './age.ts';
import { selects, type Labels } from './labels.ts';
import { type PolicyObject, selectorsOf } from './policy-target.ts';

/** A ProxyConfig: settings with which proxies start. */
export interface ProxyConfigModel extends PolicyObject {
  readonly concurrency?: number;
  readonly environmentVariables: Readonly<Record<string, string>>;
  readonly imageType?: string;
}

/** The ProxyConfigs of one Pod, at most one of each kind. Each wins over the one before it. */
export interface ProxyConfigsOfPod {
  /** Without a selector, in the root namespace. */
  readonly mesh?: ProxyConfigModel;
  /** Without a selector, in the Pod's namespace. */
  readonly namespace?: ProxyConfigModel;
  /** With a selector, in the Pod's namespace. */
  readonly workload?: ProxyConfigModel;
  /** Others with a selector that matches the Pod: younger ones, which do not count. */
  readonly shadowed: readonly ProxyConfigModel[];
}

/** Source: Istio pilot/pkg/model/proxy_config.go, whose order of settings the injector follows. */
export function proxyConfigsFor(
  all: readonly ProxyConfigModel[],
  pod: { readonly namespace: string; readonly labels: Labels },
  rootNamespace: string,
): ProxyConfigsOfPod {
  const sorted = [...all].sort(compareAge);
  const general = (namespace: string): ProxyConfigModel | undefined =>
    sorted.find((each) => each.namespace === namespace && each.target.kind === 'namespace');
  const mesh = general(rootNamespace);
  const namespace = pod.namespace === rootNamespace ? undefined : general(pod.namespace);
  const [workload, ...shadowed] = sorted.filter(
    (each) => each.namespace === pod.namespace && each.target.kind === 'labels' && isFor(each, pod.labels),
  );
  return { ...(mesh && { mesh }), ...(namespace && { namespace }), ...(workload && { workload }), shadowed };
}

function isFor({ target }: ProxyConfigModel, labels: Labels): boolean {
  return selectorsOf(target).some((selector) => selects(selector, labels));
}
