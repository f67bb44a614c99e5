import { kindOf } from '../../src/api/kinds.ts';
import { type Engine, startEngine } from '../../src/engine/engine.ts';
import { createProtos } from '../../src/envoy/encode/proto.ts';
import { defaultMeshOptions } from '../../src/mesh/inputs.ts';
import { readObjects } from '../harness/mesh.ts';

/** An engine without a source of objects, which serves Envoys on a free port. What they reject fails the test. */
export function startTestEngine(signal: AbortSignal): Promise<Engine> {
  return startEngine({
    mesh: defaultMeshOptions,
    protos: createProtos(),
    plaintext: { host: '127.0.0.1', port: 0 },
    batch: { quiet: 50, max: 250 },
    log: { info: () => undefined, warn: () => undefined },
    rejected: (rejection) => {
      throw new Error(`rejected: ${JSON.stringify(rejection)}`);
    },
    notAdmitted: ({ reason }) => {
      throw new Error(`not admitted: ${reason}`);
    },
    heapBytes: 1024 ** 3,
    signal,
  });
}

export function apply(engine: Engine, yaml: string): void {
  for (const object of readObjects(yaml)) engine.objects.upsert(kindOf(object.apiVersion, object.kind)!.name, object);
}
