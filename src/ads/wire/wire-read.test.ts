import { BadRequest } from '../bad-request.ts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createProtos } from '../../envoy/encode/proto.ts';
import { ContentHasher } from '../store/content-hash.ts';
import { readNode } from '../transport/node.ts';
import { Batch, Served } from '../store/served.ts';
import { ServedIndex } from '../store/served-index.ts';
import { resource } from '../testing/world.ts';
import { readDeltaRequest, readRequest } from './wire-read.ts';
import { runs } from '../../testing/runs.ts';

const protos = createProtos();
const hasher = new ContentHasher([3, 5]);
const nothing = [new ServedIndex([])];

const name = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom('a', 'outbound|80||a.b.svc.cluster.local', '\u{1f600}', 'x'.repeat(200)),
  )
  .filter((text) => text !== '' && text !== '*' && !/[\ud800-\udfff]/u.test(text));
const names = fc.uniqueArray(name, { maxLength: 20 });
const versions = fc.dictionary(name, fc.string({ maxLength: 200 }), { maxKeys: 20 });

let ids = 0;
const served = (key: string, version: string): Served => new Served(resource('some/type', key, version), ++ids, hasher);

test('a delta request reads as it was written', () => {
  fc.assert(
    fc.property(names, names, versions, fc.string(), (subscribe, unsubscribe, initial, nonce) => {
      const bytes = protos.encode('envoy.service.discovery.v3.DeltaDiscoveryRequest', {
        node: { id: 'n' },
        typeUrl: 'some/type',
        resourceNamesSubscribe: subscribe,
        resourceNamesUnsubscribe: unsubscribe,
        initialResourceVersions: initial,
        responseNonce: nonce,
        errorDetail: { code: 13, message: 'no' },
      });
      const request = readDeltaRequest(bytes, hasher);
      expect(request).toMatchObject({ typeUrl: 'some/type', nonce, error: { code: 13, message: 'no' } });
      expect(request.names.strings()).toEqual(subscribe);
      expect(request.removed.strings()).toEqual(unsubscribe);
      expect([request.names.count, request.removed.count]).toEqual([subscribe.length, unsubscribe.length]);
      expect(request.versions.count).toBe(Object.keys(initial).length);
      expect(Object.fromEntries(request.versions.compare(nothing).held)).toEqual({ ...initial });
    }),
  );
});

test('a request of the state of the world reads as it was written', () => {
  const bytes = protos.encode('envoy.service.discovery.v3.DiscoveryRequest', {
    versionInfo: '7',
    node: { id: 'n' },
    resourceNames: ['a', '*', '', 'b'],
    typeUrl: 'some/type',
    responseNonce: '9',
  });
  const request = readRequest(bytes, hasher);
  expect(request).toMatchObject({ typeUrl: 'some/type', nonce: '9', version: '7', error: undefined });
  expect(request.names.star).toBe(true);
  expect(request.names.strings()).toEqual(['a', 'b']);
  expect(request.names.count).toBe(2);
});

test('names have the same digest exactly if they are the same, in the same order', () => {
  const encoded = (names: readonly string[], rest: object): Buffer =>
    Buffer.from(
      protos.encode('envoy.service.discovery.v3.DeltaDiscoveryRequest', { resourceNamesSubscribe: names, ...rest }),
    );
  fc.assert(
    fc.property(names, names, fc.string(), (some, others, typeUrl) => {
      fc.pre(some.length > 0 && others.length > 0);
      const digest = (list: readonly string[], rest: object): string =>
        readDeltaRequest(encoded(list, rest), hasher).names.digest();
      expect(digest(some, {})).toBe(digest(['', '*', ...some], { typeUrl, responseNonce: '3' }));
      expect(digest(some, {}) === digest(others, {})).toBe(some.join('\n') === others.join('\n'));
    }),
  );
  // The same bytes after the first tag and length, cut differently.
  const one = Buffer.from([0x1a, 5, 0x61, 0x1a, 2, 0x62, 0x63]);
  const two = Buffer.from([0x1a, 1, 0x61, 0x1a, 2, 0x62, 0x63]);
  const [first, second] = [one, two].map((bytes) => readDeltaRequest(bytes, hasher).names);
  expect([first!.strings(), second!.strings()]).toEqual([['a\u001a\u0002bc'], ['a', 'bc']]);
  expect(first!.digest()).not.toBe(second!.digest());
});

test('versions that another encoder writes in its own way are the same versions', () => {
  const usual = Buffer.from([0x2a, 6, 0x0a, 1, 0x61, 0x12, 1, 0x31]);
  const otherOrder = Buffer.from([0x2a, 6, 0x12, 1, 0x31, 0x0a, 1, 0x61]);
  const longLength = Buffer.from([0x2a, 0x86, 0x00, 0x0a, 1, 0x61, 0x12, 1, 0x31]);
  const index = [new ServedIndex([new Batch([served('a', '1')])])];
  for (const bytes of [usual, otherOrder, longLength]) {
    const { versions } = readDeltaRequest(bytes, hasher);
    expect([...versions.compare(nothing).held]).toEqual([['a', '1']]);
    expect(versions.compare(index)).toEqual({ items: [], held: new Map(), anyCurrent: true });
  }
  const { versions } = readDeltaRequest(Buffer.from([0x2a, 3, 0x0a, 1, 0x61]), hasher);
  expect([...versions.compare(nothing).held]).toEqual([['a', '']]);
});

test('versions are compared with what a client should hold', () => {
  const dictionary = fc.dictionary(name, fc.constantFrom('1', '2', ''), { maxKeys: 8, noNullPrototype: true });
  fc.assert(
    fc.property(dictionary, dictionary, (reported, world) => {
      const bytes = protos.encode('envoy.service.discovery.v3.DeltaDiscoveryRequest', {
        typeUrl: 'some/type',
        initialResourceVersions: reported,
      });
      const batch = new Batch(Object.entries(world).map(([key, version]) => served(key, version)));
      const { items, held } = readDeltaRequest(bytes, hasher).versions.compare([
        new ServedIndex([batch]),
        new ServedIndex([new Batch([])]),
      ]);
      const differ = (from: typeof world, other: typeof world): string[] =>
        Object.keys(from).filter((key) => !Object.hasOwn(other, key) || other[key] !== from[key]);
      expect(items.map((item) => item.name)).toEqual(differ(world, reported));
      expect([...held.keys()].sort()).toEqual(differ(reported, world).sort());
      for (const [key, version] of held) expect(version).toBe(reported[key]);
    }),
  );
});

test('no bytes do anything but read or be refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      for (const read of [readRequest, readDeltaRequest]) {
        try {
          const request = read(bytes, hasher);
          request.names.strings();
          request.removed.strings();
          request.versions.compare(nothing);
          if (request.node !== undefined) readNode(request.node, 's');
        } catch (error) {
          expect(error).toBeInstanceOf(BadRequest);
        }
      }
    }),
    { numRuns: runs(2000) },
  );
});

test('a node reads as plain JSON', () => {
  const metadata = {
    NAME: 'a',
    PORT: 1.5,
    ON: true,
    OFF: false,
    NONE: null,
    LABELS: { app: 'x' },
    LIST: ['a', 1, { b: [] }],
  };
  const bytes = protos.encode(
    'envoy.config.core.v3.Node',
    protos.fromJson('envoy.config.core.v3.Node', {
      id: 'sidecar~1',
      cluster: 'c',
      metadata,
      locality: { region: 'r', zone: 'z', subZone: 's' },
      userAgentName: 'envoy',
      userAgentBuildVersion: { version: { majorNumber: 1, minorNumber: 40, patch: 2 }, metadata: { ssl: 'BoringSSL' } },
      extensions: [
        { name: 'envoy.filters.http.router', category: 'envoy.filters.http', typeUrls: ['x'] },
        { name: 'istio.stats', disabled: true },
      ],
    }),
  );
  expect(readNode(bytes, 'stream-1')).toEqual({
    stream: 'stream-1',
    nodeId: 'sidecar~1',
    nodeCluster: 'c',
    metadata,
    locality: { region: 'r', zone: 'z', subZone: 's' },
    build: 'envoy 1.40.2',
    extensions: ['istio.stats'],
  });
});

test('numbers that are none in JSON, and names that mean something to JavaScript, do no harm', () => {
  const struct = { fields: { __proto__: { numberValue: Number.NaN }, constructor: { stringValue: 'x' } } };
  Object.defineProperty(struct.fields, '__proto__', { value: { numberValue: Number.NaN }, enumerable: true });
  const key = (text: string): Buffer => Buffer.concat([Buffer.from([0x0a, text.length]), Buffer.from(text)]);
  const nan = Buffer.alloc(9);
  nan[0] = 0x11;
  nan.writeDoubleLE(Number.NaN, 1);
  const entry = Buffer.concat([key('__proto__'), Buffer.from([0x12, nan.length]), nan]);
  const metadata = Buffer.concat([Buffer.from([0x0a, entry.length]), entry]);
  const node = Buffer.concat([Buffer.from([0x1a, metadata.length]), metadata]);
  const read = readNode(node, 's').metadata;
  expect(Object.entries(read)).toEqual([['__proto__', null]]);
  expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
});
