import { expect, test } from 'vitest';
import { parseProtocol, servicePortProtocol } from './protocol.ts';

test.each([
  ['HTTP', 'HTTP'],
  ['http2', 'HTTP2'],
  ['gRPC', 'GRPC'],
  ['GRPC-Web', 'GRPCWeb'],
  ['grpc-web-text', 'GRPCWeb'],
  ['HTTP_PROXY', 'HTTP_PROXY'],
  ['Mongo', 'Mongo'],
  ['MySQL', 'MySQL'],
  ['tls', 'TLS'],
  ['UDP', 'UDP'],
  ['', 'Unsupported'],
  ['constructor', 'Unsupported'],
  ['http-alt', 'Unsupported'],
])('the protocol %j of a field is %s', (text, protocol) => {
  expect(parseProtocol(text)).toBe(protocol);
});

test.each([
  ['the name', { name: 'http' }, 'HTTP'],
  ['the name before the first dash', { name: 'grpc-a-b' }, 'GRPC'],
  ['a name with a longer protocol', { name: 'GRPC-web-a' }, 'GRPCWeb'],
  ['a name that only begins like one', { name: 'https2' }, 'Unsupported'],
  ['no name', {}, 'Unsupported'],
  ['appProtocol, before the name', { name: 'tcp', appProtocol: 'http2' }, 'HTTP2'],
  ['an appProtocol of Kubernetes', { name: 'tcp', appProtocol: 'kubernetes.io/h2c' }, 'HTTP2'],
  ['WebSocket', { appProtocol: 'kubernetes.io/ws' }, 'HTTP'],
  ['WebSocket over TLS', { appProtocol: 'kubernetes.io/wss' }, 'HTTPS'],
  ['an unknown appProtocol, whatever the name says', { name: 'http', appProtocol: 'example.com/x' }, 'Unsupported'],
  ['the transport, before all', { name: 'http', appProtocol: 'http', protocol: 'UDP' }, 'UDP'],
  ['a port whose server speaks first', { port: 3306 }, 'TCP'],
  ['such a port that says what it is', { port: 3306, name: 'http' }, 'HTTP'],
])('the protocol of a Service port comes from %s', (_, port, protocol) => {
  expect(servicePortProtocol({ port: 80, ...port })).toBe(protocol);
});
