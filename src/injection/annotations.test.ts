import { expect, test } from 'vitest';
import { readAnnotations, remarksOn } from './annotations.ts';

const wrong: readonly (readonly [name: string, value: string, says: string])[] = [
  ['proxy.istio.io/config', 'a: [', 'YAML'],
  ['proxy.istio.io/config', '- a', 'must be a map'],
  ['proxy.istio.io/config', 'concurrency: two', 'concurrency must be a whole number'],
  ['proxy.istio.io/config', 'drainDuration: 45', 'drainDuration must be text'],
  ['proxy.istio.io/config', 'drainDuration: 45 seconds', '"45s"'],
  ['proxy.istio.io/config', 'interceptionMode: TPROXY', 'must be REDIRECT or NONE'],
  ['proxy.istio.io/config', 'proxyMetadata: {A: 1}', 'proxyMetadata.A must be text'],
  ['proxy.istio.io/config', 'proxyMetadata: {"1 A": x}', '"1 A"'],
  ['inject.istio.io/templates', ' , ', '"sidecar,my-template"'],
  ['sidecar.istio.io/interceptionMode', 'TPROXY', 'not supported; use "REDIRECT"'],
  ['sidecar.istio.io/interceptionMode', 'x', '"REDIRECT" or "NONE"'],
  ['sidecar.istio.io/proxyImage', 'a b', 'registry.example.com'],
  ['sidecar.istio.io/proxyCPU', '100 m', '"100m"'],
  ['sidecar.istio.io/proxyCPU', '-1', '"100m"'],
  ['sidecar.istio.io/proxyMemory', '1Kb', '"128Mi"'],
  ['sidecar.istio.io/logLevel', 'loud', 'debug'],
  ['sidecar.istio.io/agentLogLevel', 'default:loud', 'warn'],
  ['proxy.istio.io/config', 'statusPort: 0', 'statusPort must be a port'],
  ['sidecar.istio.io/componentLogLevel', 'http', '"http:debug,router:info"'],
  ['sidecar.istio.io/rewriteAppHTTPProbers', 'yes', 'neither "true" nor "false"'],
  ['sidecar.istio.io/discoveryAddress', 'fairlead', 'fairlead.istio-system.svc:15012'],
  ['sidecar.istio.io/discoveryAddress', 'fairlead:99999', 'fairlead.istio-system.svc:15012'],
  ['sidecar.istio.io/bootstrapOverride', 'My_Map', '"my-bootstrap"'],
  ['sidecar.istio.io/statsFlushInterval', '5', '"5s"'],
  ['sidecar.istio.io/statsHistogramBuckets', '{"a":[5,1]}', 'rising numbers'],
  ['sidecar.istio.io/statsHistogramBuckets', '{"a":1}', 'rising numbers'],
  ['sidecar.istio.io/userVolume', '{', 'not valid JSON'],
  ['sidecar.istio.io/userVolume', '{"A":{}}', 'emptyDir'],
  ['sidecar.istio.io/userVolumeMount', '[{"name":"a"}]', 'mountPath'],
  ['sidecar.istio.io/userVolumeMount', '3', 'mountPath'],
  ['status.sidecar.istio.io/port', '70000', 'from 1 to 65535'],
  ['readiness.status.sidecar.istio.io/periodSeconds', '0', 'at least 1'],
  ['readiness.status.sidecar.istio.io/periodSeconds', '00', 'at least 1'],
  ['readiness.status.sidecar.istio.io/failureThreshold', '1s', '"15"'],
  ['traffic.sidecar.istio.io/excludeInboundPorts', '80,http', '"8080,9090"'],
  ['traffic.sidecar.istio.io/excludeInboundPorts', '*', '"8080,9090"'],
  ['traffic.sidecar.istio.io/includeInboundPorts', '0', '"8080,9090"'],
  ['traffic.sidecar.istio.io/includeOutboundIPRanges', '10.0.0.0/8,*', 'fd00::/8'],
  ['traffic.sidecar.istio.io/excludeOutboundIPRanges', Array(1001).fill('10.0.0.1').join(','), 'more than 1000'],
  ['traffic.sidecar.istio.io/excludeInterfaces', 'eth0; flush', '"eth1,net1"'],
  ['traffic.sidecar.istio.io/excludeInterfaces', 'a-very-long-interface', '"eth1,net1"'],
];

test.each(wrong)('%s: %s is refused with its name and what to write', (name, value, says) => {
  const read = readAnnotations({ [name]: value });
  expect(read).toEqual({ wrong: expect.stringMatching(new RegExp(`^annotation ${name}: `)) });
  expect(read).toEqual({ wrong: expect.stringContaining(says) });
});

test.each([
  ['traffic.sidecar.istio.io/includeInboundPorts', '*', '*'],
  ['traffic.sidecar.istio.io/includeInboundPorts', '', []],
  ['traffic.sidecar.istio.io/excludeInboundPorts', ' 80 ,443, 80', [80, 443]],
  ['traffic.sidecar.istio.io/excludeOutboundIPRanges', '10.1.0.0/16, fd00::1', ['10.1.0.0/16', 'fd00::1']],
  ['traffic.sidecar.istio.io/excludeInterfaces', 'eth0.100,veth+', ['eth0.100', 'veth+']],
  ['status.sidecar.istio.io/port', '0', 0],
  ['sidecar.istio.io/agentLogLevel', 'dns:debug,default:warn', 'warn'],
  ['sidecar.istio.io/agentLogLevel', 'dns:debug', undefined],
  ['sidecar.istio.io/agentLogLevel', 'debug', 'debug'],
  ['sidecar.istio.io/proxyCPU', '0.5', '0.5'],
  ['sidecar.istio.io/proxyMemory', '1e9', '1e9'],
  ['sidecar.istio.io/discoveryAddress', '[fd00::1]:15012', '[fd00::1]:15012'],
  ['sidecar.istio.io/userVolume', '[{"name":"a","emptyDir":{}}]', [{ name: 'a', emptyDir: {} }]],
  ['sidecar.istio.io/userVolumeMount', '{"a":{"mountPath":"/a"}}', [{ name: 'a', mountPath: '/a' }]],
  ['proxy.istio.io/config', '', {}],
  ['proxy.istio.io/config', '{"concurrency": 2, "somethingNew": {"a": 1}}', { concurrency: 2, somethingNew: { a: 1 } }],
])('%s: %s is read', (name, text, value) => {
  expect(readAnnotations({ [name]: text, other: 'x' })).toEqual({ value: { [name]: value } });
});

test('annotations that have no effect are named, with what to do; those of others are not', () => {
  const remarks = remarksOn({
    'sidecar.istio.io/inject': 'true',
    'sidecar.istio.io/statsInclusionPrefixes': 'cluster.outbound',
    'sidecar.istio.io/logLevel': 'debug',
    'traffic.sidecar.istio.io/excludeInboundPort': '80',
    'prometheus.istio.io/secure-port': '15091',
    'sidecar.istio.io/constructor': 'a',
    'example.com/sidecar.istio.io': 'a',
    'prometheus.io/port': '80',
    plain: 'a',
  });
  expect(remarks).toEqual([
    'annotation traffic.sidecar.istio.io/excludeInboundPort has no effect; it is not known: check its name',
    'annotation prometheus.istio.io/secure-port has no effect; it is not supported: set ENVOY_SECURE_METRICS_PORT in proxyMetadata',
    'annotation sidecar.istio.io/constructor has no effect; it is not known: check its name',
  ]);
});
