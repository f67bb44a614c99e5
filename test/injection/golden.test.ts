import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import type { Annotations } from '../../src/injection/annotations.ts';
import { takeOut } from '../../src/injection/take-out.ts';
import { caseNames, expectedFile, injectorWith, orphans, printResult, readCase } from './case.ts';

describe.each(caseNames())('%s', (name) => {
  const { injector, request } = readCase(name);
  const result = injector.inject(request);

  test('becomes what is expected', () => {
    expect(printResult(result), 'run make golden and review the diff').toBe(readFileSync(expectedFile(name), 'utf8'));
  });

  test('does not change what it is given', () => {
    expect(JSON.stringify(request)).toBe(JSON.stringify(readCase(name).request));
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

/** Those that the agent reads from the Pod. */
type OfTheAgent = 'sidecar.istio.io/statsFlushInterval' | 'sidecar.istio.io/statsHistogramBuckets';

/** Values that are not the default ones. */
const unusual: Readonly<Record<Exclude<keyof Annotations, OfTheAgent>, string>> = {
  'proxy.istio.io/config': 'concurrency: 7',
  'inject.istio.io/templates': 'grpc-simple',
  'sidecar.istio.io/interceptionMode': 'NONE',
  'sidecar.istio.io/proxyImage': 'other:1',
  'sidecar.istio.io/proxyImageType': 'debug',
  'sidecar.istio.io/proxyCPU': '123m',
  'sidecar.istio.io/proxyCPULimit': '3',
  'sidecar.istio.io/proxyMemory': '123Mi',
  'sidecar.istio.io/proxyMemoryLimit': '3Gi',
  'sidecar.istio.io/logLevel': 'trace',
  'sidecar.istio.io/componentLogLevel': 'http:debug',
  'sidecar.istio.io/agentLogLevel': 'debug',
  'sidecar.istio.io/rewriteAppHTTPProbers': 'false',
  'sidecar.istio.io/nativeSidecar': 'false',
  'sidecar.istio.io/capNetBindService': 'true',
  'sidecar.istio.io/discoveryAddress': 'other.svc:15012',
  'sidecar.istio.io/bootstrapOverride': 'mine',
  'sidecar.istio.io/userVolume': '{"mine":{"emptyDir":{}}}',
  'sidecar.istio.io/userVolumeMount': '{"mine":{"mountPath":"/mine"}}',
  'status.sidecar.istio.io/port': '15999',
  'readiness.status.sidecar.istio.io/initialDelaySeconds': '7',
  'readiness.status.sidecar.istio.io/periodSeconds': '7',
  'readiness.status.sidecar.istio.io/failureThreshold': '7',
  'prometheus.istio.io/merge-metrics': 'false',
  'traffic.sidecar.istio.io/includeInboundPorts': '8081',
  'traffic.sidecar.istio.io/excludeInboundPorts': '8081',
  'traffic.sidecar.istio.io/includeOutboundPorts': '8081',
  'traffic.sidecar.istio.io/excludeOutboundPorts': '8081',
  'traffic.sidecar.istio.io/includeOutboundIPRanges': '10.1.0.0/16',
  'traffic.sidecar.istio.io/excludeOutboundIPRanges': '10.1.0.0/16',
  'traffic.sidecar.istio.io/excludeInterfaces': 'eth7',
  'traffic.sidecar.istio.io/kubevirtInterfaces': 'eth7',
  'istio.io/reroute-virtual-interfaces': 'eth7',
};

const annotated = injectorWith({ proxy: { imageTypes: { debug: 'fairlead-proxy:debug' } } });

test.each(Object.entries(unusual))('the annotation %s has an effect', (name, value) => {
  const injected = (annotations: Readonly<Record<string, string>>): Json => {
    const readinessProbe = { httpGet: { path: '/', port: 8080 } };
    const result = annotated.inject({
      pod: {
        metadata: {
          name: 'a',
          annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '8080', ...annotations },
        },
        spec: { containers: [{ name: 'a', image: 'a', readinessProbe }] },
      },
      namespace: { name: 'shop', labels: { 'istio-injection': 'enabled' } },
      meshConfig: {},
      parameters: { env: {} },
    });
    return (result as { readonly pod: Json }).pod['spec'] as Json;
  };
  expect(injected({ [name]: value })).not.toEqual(injected({}));
});

/** Without empty maps and lists, which mean nothing; containers by name, since the user's proxy has moved. */
function plain(pod: Json): unknown {
  const { metadata, spec } = pod as { readonly metadata: Json; readonly spec: Json };
  const sorted = (list: unknown): unknown =>
    Array.isArray(list) ? [...(list as Json[])].sort((a, b) => (String(a['name']) < String(b['name']) ? -1 : 1)) : list;
  const members = {
    ...spec,
    containers: sorted(spec['containers']),
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

/** The agent is told the number of a port that has a name. */
function withNumberedPorts(pod: Json): Json {
  const text = JSON.stringify(pod).replace('"port":"http"', '"port":8080');
  return JSON.parse(text) as Json;
}
