import { ApiError } from './api-server.ts';
import type { ApiObject, RunningApiServer } from './api-server.ts';
import { poll } from './process.ts';

export interface FakeKubeletOptions {
  /** The address of a pod, called once per pod. Not in 127.0.0.0/8: EndpointSlices do not accept that. */
  readonly podIP: (pod: Pod) => string;
  /** Whether a deleted pod ends now; until then it is terminating (draining). Called at each change of the pod. */
  readonly ends?: (pod: Pod) => boolean;
  readonly signal: AbortSignal;
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly resourceVersion: string;
  };
  readonly spec: { readonly nodeName?: string; readonly containers: readonly { name: string; image: string }[] };
  readonly status?: { readonly podIP?: string; readonly phase?: string };
}

const NODE = 'fake';

/**
 * A node without containers: binds every pod to itself, gives it an address, marks it ready, and lets deleted pods go.
 * The real controllers do everything else (ReplicaSets, EndpointSlices). Settles once the node is ready; `stopped`
 * settles after the signal fires, and rejects if the kubelet failed.
 */
export async function startFakeKubelet(
  api: RunningApiServer,
  { podIP, ends = () => true, signal }: FakeKubeletOptions,
): Promise<{ readonly stopped: Promise<void> }> {
  await createNode(api);
  const react = async (pod: Pod): Promise<void> => {
    const { name, namespace, deletionTimestamp } = pod.metadata;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    if (deletionTimestamp) {
      if (ends(pod)) await api.call('DELETE', path, { gracePeriodSeconds: 0 });
    } else if (!pod.spec.nodeName) {
      await api.call('POST', `${path}/binding`, {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name },
        target: { kind: 'Node', name: NODE },
      });
    } else if (pod.spec.nodeName === NODE && !pod.status?.podIP) {
      await api.call('PATCH', `${path}/status`, { status: runningStatus(pod, podIP(pod)) });
    }
  };

  const follow = async (): Promise<void> => {
    const list = (await api.call('GET', '/api/v1/pods')) as unknown as PodList;
    for (const pod of list.items) await unlessGone(react(pod));
    const query = `watch=1&resourceVersion=${list.metadata.resourceVersion}`;
    for await (const line of api.lines(`/api/v1/pods?${query}`, signal)) {
      const event = JSON.parse(line) as { type: string; object: Pod };
      if (event.type === 'ERROR') return;
      if (event.type !== 'DELETED') await unlessGone(react(event.object));
    }
  };
  const stopped = (async () => {
    while (!signal.aborted) {
      await follow().catch(async (error: unknown) => {
        // Anything else is a broken connection: the API server is being restarted.
        if (signal.aborted || error instanceof ApiError) throw error;
        await poll('API server', () => api.call('GET', '/version').catch(() => undefined), { signal });
      });
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  // A test that ignores it still sees the failure, by waiting in vain: the runner does not crash.
  stopped.catch(() => {});
  return { stopped };
}

interface PodList {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly Pod[];
}

/** The pod may have changed or disappeared since the event; then another event follows. */
async function unlessGone(reaction: Promise<void>): Promise<void> {
  try {
    await reaction;
  } catch (error) {
    if (!(error instanceof ApiError && (error.status === 404 || error.status === 409))) throw error;
  }
}

async function createNode(api: RunningApiServer): Promise<void> {
  const labels = {
    'kubernetes.io/hostname': NODE,
    'topology.kubernetes.io/region': 'region-1',
    'topology.kubernetes.io/zone': 'zone-1',
  };
  await api.call('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, labels } });
  const capacity = { cpu: '8', memory: '32Gi', pods: '1000' };
  await api.call('PATCH', `/api/v1/nodes/${NODE}/status`, {
    status: { capacity, allocatable: capacity, conditions: [condition('Ready', 'KubeletReady')] },
  });
}

function runningStatus({ spec }: Pod, address: string): object {
  const now = new Date().toISOString();
  return {
    phase: 'Running',
    podIP: address,
    podIPs: [{ ip: address }],
    startTime: now,
    conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => condition(type)),
    containerStatuses: spec.containers.map(({ name, image }) => ({
      name,
      image,
      imageID: image,
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: now } },
    })),
  };
}

function condition(type: string, reason = 'Fake'): ApiObject {
  return { type, status: 'True', reason, lastTransitionTime: new Date().toISOString() };
}
