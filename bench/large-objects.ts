/** The longest step of a commit that adds one large object, and what it produces: `node bench/large-objects.ts`. */
import type { KubernetesObject } from '../src/api/object.ts';
import { Derived } from '../src/cache/derived.ts';
import { servedBeside } from '../test/robustness/large-objects.ts';
import { objectsWithProducts } from '../test/robustness/large-products.ts';

interface Step {
  readonly collection: string;
  readonly key: string;
  readonly ms: number;
}

/** CPU of this thread, which load on the machine does not affect. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Runs a body and returns the transform that took longest. */
function longestStep(body: () => void): Step {
  const runs = Derived.prototype as unknown as {
    execute(this: { name: string }, key: string, causes: unknown): unknown;
  };
  const { execute } = runs;
  let longest: Step = { collection: '', key: '', ms: 0 };
  runs.execute = function (key, causes) {
    const start = cpuMs();
    const result = execute.call(this, key, causes);
    const ms = cpuMs() - start;
    if (ms > longest.ms) longest = { collection: this.name, key, ms };
    return result;
  };
  body();
  runs.execute = execute;
  return longest;
}

for (const [title, object] of objectsWithProducts()) {
  const measure = (): { step: Step; problems: number; clusters: number; ms: number } => {
    const start = cpuMs();
    let mesh!: ReturnType<typeof servedBeside>;
    const step = longestStep(() => (mesh = servedBeside(object as KubernetesObject)));
    const ms = cpuMs() - start;
    return {
      step,
      problems: [...mesh.mesh.problems.byObject.entries()].length,
      clusters: mesh.snapshot('sidecar').cds.length,
      ms,
    };
  };
  measure();
  const { step, problems, clusters, ms } = measure();
  console.log(
    `${title}: ${step.ms.toFixed(0)} ms in ${step.collection} of ${ms.toFixed(0)} ms; ${clusters} clusters${problems > 0 ? ', refused' : ''}`,
  );
}
