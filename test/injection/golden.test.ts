import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { takeOut } from '../../src/injection/take-out.ts';
import { caseNames, expectedFile, orphans, printResult, readCase } from './case.ts';

describe.each(caseNames())('%s', (name) => {
  const { injector, request } = readCase(name);
  const result = injector.inject(request);

  test('becomes what is expected', () => {
    expect(printResult(result), 'run make golden and review the diff').toBe(readFileSync(expectedFile(name), 'utf8'));
  });

  test('does not change what it is given', () => {
    expect(request).toEqual(readCase(name).request);
  });

  if (!('pod' in result)) return;

  test('is stable in a second run, also after a round through the API server', () => {
    const again = JSON.parse(JSON.stringify(result.pod)) as Json;
    expect(injector.inject({ ...request, pod: again })).toEqual(result);
  });

  test('can be taken out again', () => {
    expect(plain(takeOut(result.pod))).toEqual(plain(withNumberedPorts(request.pod)));
  });
});

test('there is no expected file without a case', () => {
  expect(orphans()).toEqual([]);
});

/** Without empty maps and lists, which mean nothing; containers by name, since the user's proxy has moved. */
function plain(pod: Json): unknown {
  const { metadata, spec } = pod as { readonly metadata: Json; readonly spec: Json };
  const sorted = (list: unknown): unknown =>
    Array.isArray(list) ? [...(list as Json[])].sort((a, b) => (String(a['name']) < String(b['name']) ? -1 : 1)) : list;
  const members = {
    ...spec,
    containers: sorted(withoutEach(spec['containers'])),
    initContainers: sorted(spec['initContainers']),
    // What a template adds to the spec itself stays.
    securityContext: undefined,
    tolerations: undefined,
  };
  return JSON.parse(
    JSON.stringify({ metadata, spec: members }, (_, value: unknown) =>
      typeof value === 'object' && value !== null && Object.keys(value).length === 0 ? undefined : value,
    ),
  );
}

/** What the template grpc-agent adds to each container of the application stays, too. */
function withoutEach(containers: unknown): unknown {
  const added = [
    ...['BOOTSTRAP', 'EXPERIMENTAL_SECURITY_SUPPORT', 'EXPERIMENTAL_RBAC'].map((each) => `GRPC_XDS_${each}`),
    'istio-xds',
    'istio-data',
  ];
  return (containers as readonly Json[]).map(({ env = [], volumeMounts = [], ...container }) => ({
    ...container,
    env: (env as readonly Json[]).filter(({ name }) => !added.includes(String(name))),
    volumeMounts: (volumeMounts as readonly Json[]).filter(({ name }) => !added.includes(String(name))),
  }));
}

/** The agent is told the number of a port that has a name. */
function withNumberedPorts(pod: Json): Json {
  const text = JSON.stringify(pod).replace('"port":"http"', '"port":8080');
  return JSON.parse(text) as Json;
}
