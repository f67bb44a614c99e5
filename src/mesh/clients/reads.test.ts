import { expect, test } from 'vitest';
import { connectedProxy } from '../../../test/harness/mesh.ts';
import { MeshLab, objectOf } from '../../../test/harness/lab.ts';
import { Graph } from '../../cache/graph.ts';
import { Reads } from './reads.ts';

test('what was read is the same until one of its entries or groups changes, comes or goes', () => {
  const graph = new Graph();
  const input = graph.input<string>('input');
  const byLetter = graph.index('by letter', input, (_, value) => [value[0]!]);
  const set = (key: string, value: string | undefined): void => void graph.commit([input.write(key, value)]);
  const isSame = (key: string, value: string | undefined): boolean => {
    const reads = new Reads(graph.present);
    reads.get(input, '1');
    reads.get(input, 'absent');
    reads.group(byLetter, 'a');
    reads.group(byLetter, 'z');
    set(key, value);
    return reads.again(graph.present);
  };
  set('1', 'ant');
  set('2', 'ape');
  expect(isSame('3', 'bee')).toBe(true);
  expect(isSame('1', 'aphid')).toBe(false);
  expect(isSame('2', 'auk')).toBe(false);
  expect(isSame('absent', 'bat')).toBe(false);
  expect(isSame('4', 'zebra')).toBe(false);
  expect(isSame('2', undefined)).toBe(false);
});

test('a group that the commit under way goes on to change is not the same afterwards', () => {
  const graph = new Graph();
  const input = graph.input<string>('input');
  const byLetter = graph.index('by letter', input, (_, value) => [value[0]!]);
  graph.commit([input.write('1', 'ant')]);
  const more = Array.from({ length: 200 }, (_, i) => input.write(`${i + 2}`, 'ape'));
  const steps = graph.draftInSteps(more);
  let sawMore = false;
  for (;;) {
    const reads = new Reads(graph.present);
    const before = reads.group(byLetter, 'a').length;
    const { done, value } = steps.next();
    const isGrown = graph.present.group(byLetter, 'a').length > before;
    expect(reads.again(graph.present)).toBe(!isGrown);
    sawMore ||= isGrown && before > 1;
    if (done === true) {
      value.publish();
      break;
    }
  }
  expect(sawMore).toBe(true);
});

const proxy = connectedProxy('a.shop', {
  id: 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local',
  metadata: { NAMESPACE: 'shop', LABELS: { app: 'a' } },
});

test('a proxy is what it was found to be when it was admitted, without another computation', () => {
  const lab = new MeshLab([], []);
  const { mesh } = lab;
  const admitted = mesh.classes.preview(proxy);
  expect(mesh.classes.preview(proxy)).toBe(admitted);
  lab.connect(proxy);
  expect(mesh.proxies.get('a.shop')).toBe(admitted);
});

test('unless something has changed meanwhile, or does later', () => {
  const lab = new MeshLab([], []);
  const { mesh } = lab;
  const sidecar = objectOf('Sidecar', 'shop/own', { spec: { egress: [{ hosts: ['./*'] }] } });
  mesh.classes.preview(proxy);
  lab.apply([sidecar]);
  lab.connect(proxy);
  expect(mesh.proxies.get('a.shop')).toMatchObject({ scope: { sidecar: expect.stringContaining('own') as unknown } });
  lab.delete([sidecar]);
  expect(mesh.proxies.get('a.shop')).toMatchObject({ scope: { sidecar: '' } });
});
