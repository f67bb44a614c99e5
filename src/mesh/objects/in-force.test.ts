import { expect, test } from 'vitest';
import { TestMesh } from '../../../test/harness/mesh.ts';
import { generationKey } from './in-force.ts';

const key = 'Kubernetes/shop/api';

function entry(generation: number, hosts: readonly string[], address: string, uid = 'u') {
  return {
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata: { name: 'api', namespace: 'shop', uid, generation },
    spec: { hosts, ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], resolution: 'DNS' },
    status: { addresses: [{ value: address, host: 'api.example.com' }] },
  };
}

function serve(former: ReturnType<typeof entry>, newest: ReturnType<typeof entry>): TestMesh {
  const lab = new TestMesh();
  const { inputs } = lab.mesh;
  const id = generationKey('ServiceEntry', key);
  lab.commit([
    inputs.formerGenerations.write(id, { objects: [former] }),
    inputs.objects.ServiceEntry.write(key, newest),
  ]);
  return lab;
}

test('a former generation is in force with the status that the object has now', () => {
  const { mesh } = serve(entry(1, ['api.example.com'], '240.240.0.1'), entry(2, ['not a host'], '240.240.0.2'));
  expect(mesh.verdictOf(generationKey('ServiceEntry', key))?.inForce).toEqual({ generation: 1 });
  expect(JSON.stringify(mesh.services.get('shop/api.example.com'))).toContain('240.240.0.2');
  expect(JSON.stringify(mesh.services.get('shop/api.example.com'))).not.toContain('240.240.0.1');
});

test('one of an object that was deleted is not in force for another one of its name', () => {
  const { mesh } = serve(entry(1, ['api.example.com'], '240.240.0.1'), entry(2, ['not a host'], '240.240.0.2', 'v'));
  expect(mesh.verdictOf(generationKey('ServiceEntry', key))?.inForce).toBeUndefined();
  expect(mesh.services.get('shop/api.example.com')).toBeUndefined();
});
