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
  expect(mesh.verdicts.get(generationKey('ServiceEntry', key))?.inForce).toEqual({ generation: 1 });
  expect(JSON.stringify(mesh.services.get('shop/api.example.com'))).toContain('240.240.0.2');
  expect(JSON.stringify(mesh.services.get('shop/api.example.com'))).not.toContain('240.240.0.1');
});

test('one of an object that was deleted is not in force for another one of its name', () => {
  const { mesh } = serve(entry(1, ['api.example.com'], '240.240.0.1'), entry(2, ['not a host'], '240.240.0.2', 'v'));
  expect(mesh.verdicts.get(generationKey('ServiceEntry', key))?.inForce).toBeUndefined();
  expect(mesh.services.get('shop/api.example.com')).toBeUndefined();
});

test('of a policy, the newest valid generation is in force, whatever proxies reject', () => {
  const lab = new TestMesh();
  const { inputs } = lab.mesh;
  const policyKey = 'Kubernetes/shop/lock';
  const id = generationKey('AuthorizationPolicy', policyKey);
  const policy = (generation: number, spec: object) => ({
    apiVersion: 'security.istio.io/v1',
    kind: 'AuthorizationPolicy',
    metadata: { name: 'lock', namespace: 'shop', uid: 'u', generation },
    spec,
  });
  const rejected = { uid: 'u', generations: [2, 3].map((generation) => ({ generation, proxies: 2, rejections: [] })) };
  const loose = policy(1, { rules: [{}] });
  const strict = policy(2, {});
  lab.commit([
    inputs.rejectedGenerations.write(id, rejected),
    inputs.formerGenerations.write(id, { objects: [loose] }),
    inputs.objects.AuthorizationPolicy.write(policyKey, strict),
  ]);
  expect(lab.mesh.verdicts.get(id)?.inForce).toBeUndefined();
  lab.commit([
    inputs.formerGenerations.write(id, { objects: [strict, loose] }),
    inputs.objects.AuthorizationPolicy.write(policyKey, policy(3, { action: 'NONE' })),
  ]);
  expect(lab.mesh.verdicts.get(id)?.inForce).toEqual({ generation: 2 });
});
