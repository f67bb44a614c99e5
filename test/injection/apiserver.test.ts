import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { withPeers } from '../peers/with-peers.ts';
import { caseNames, readCase } from './case.ts';

const injected = caseNames().flatMap((name) => {
  const { injector, request } = readCase(name);
  const result = injector.inject(request);
  return 'pod' in result ? [{ name, pod: result.pod }] : [];
});

/** What Pod Security asks of a container at the level "restricted". */
const restricted = {
  runAsNonRoot: true,
  runAsUser: 1000,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

interface Spec {
  readonly containers: readonly Json[];
  readonly initContainers?: readonly Json[];
}

/** The Pod with applications that are allowed anywhere, and without the container that never is. */
function asRestricted(pod: Json): Json {
  const { containers, initContainers = [], ...spec } = pod['spec'] as Spec;
  const allowed = (container: Json): Json =>
    container['name'] === 'istio-proxy' ? container : { ...container, securityContext: restricted };
  return {
    ...pod,
    spec: {
      ...spec,
      containers: containers.map(allowed),
      initContainers: initContainers.filter(({ name }) => name !== 'istio-init').map(allowed),
    },
  };
}

withPeers(['etcd', 'kube-apiserver', 'kubectl'], 'a real API server', () => {
  let running: BorrowedApiServer | undefined;
  const api = (): BorrowedApiServer => running ?? expect.fail('it did not start');

  beforeAll(async () => {
    running = await borrowApiServer();
    for (const [name, level] of [
      ['open', 'privileged'],
      ['closed', 'restricted'],
    ]) {
      await running.call('POST', '/api/v1/namespaces', {
        metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': level } },
      });
      // Their tokens are mounted under random names.
      for (const account of ['default', 'cart'])
        await running.call('POST', `/api/v1/namespaces/${name}/serviceaccounts`, {
          metadata: { name: account },
          automountServiceAccountToken: false,
        });
    }
  });
  afterAll(() => running?.stop());

  const create = (namespace: string, pod: Json): Promise<Json> =>
    api().call('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All&fieldValidation=Strict`, pod);

  test.each(injected)('takes the Pod of $name', async ({ pod }) => {
    await expect(create('open', pod)).resolves.toHaveProperty('kind', 'Pod');
  });

  test.each(injected.filter(({ name }) => name !== 'probe-elsewhere'))(
    // Its own probe is not allowed there.
    'takes the Pod of $name where Pod Security is "restricted", apart from interception',
    async ({ pod }) => {
      await expect(create('closed', asRestricted(pod))).resolves.toHaveProperty('kind', 'Pod');
    },
  );

  test('would refuse the container that sets up interception there', async () => {
    await expect(create('closed', injected.find(({ name }) => name === 'sidecar-native')!.pod)).rejects.toThrow(
      /istio-init/,
    );
  });

  test.each(injected)('makes the Pod of $name such that a second run is stable', async ({ name, pod }) => {
    const { injector, request } = readCase(name);
    // With the fields that the API server adds.
    const stored = await create('open', pod);
    const again = injector.inject({ ...request, pod: stored });
    if (!('pod' in again)) return expect.fail(JSON.stringify(again));
    expect(withoutStatus(await create('open', again.pod))).toEqual(withoutStatus(stored));
  });
});

function withoutStatus(pod: Json): unknown {
  const { metadata, spec } = pod as { readonly metadata: Json; readonly spec: Json };
  // The name of a Pod that is not stored is made anew.
  const { name: _, uid: __, creationTimestamp: ___, managedFields: ____, ...rest } = metadata;
  return { metadata: rest, spec };
}
