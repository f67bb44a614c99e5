import { join } from 'node:path';
import { expect } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { pathOf } from '../peers/peer.ts';
import { run } from '../peers/process.ts';

export const ROOT = join(import.meta.dirname, '../..');
export const CHART = join(ROOT, 'charts/fairlead');
export const NAMESPACE = 'istio-system';

/** Kubernetes as the chart sees it; a helm built from source takes a very old one. */
const KUBERNETES = ['--kube-version', '1.34.4'];

export interface ChartObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly annotations?: Readonly<Record<string, string>>;
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly [member: string]: unknown;
}

/** What helm makes of the chart; throws with what helm says when it refuses. Values as JSON. */
export async function renderChart(values: object = {}, ...args: string[]): Promise<ChartObject[]> {
  const { code, stdout, stderr } = await helm('template', 'fairlead', CHART, '-n', NAMESPACE, values, ...args);
  if (code !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout).flatMap((document) => {
    const object = document.toJS() as ChartObject | null;
    return object === null ? [] : [object];
  });
}

/** Where the images of a test are: the chart of the control plane has no default. */
export const HUB = 'registry.example.com';
export const IMAGES = ['--set', `global.hub=${HUB}`];

export async function helm(
  ...args: readonly (string | object)[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const values = { global: { hub: HUB }, ...args.find((arg) => typeof arg === 'object') };
  const [command = '', ...rest] = args.filter((arg) => typeof arg === 'string');
  return run(pathOf('helm'), [command, ...KUBERNETES, ...rest, '--values', '-'], { input: JSON.stringify(values) });
}

export type Json = Readonly<Record<string, unknown>>;

/** The Deployment, and its first container. */
export function deploymentOf(objects: readonly ChartObject[]): {
  readonly deployment: Json;
  readonly labels: Json;
  readonly pod: Json;
  readonly container: Json;
} {
  const found = objects.find(({ kind }) => kind === 'Deployment') ?? expect.fail('there is no Deployment');
  const deployment = found['spec'] as Json;
  const template = deployment['template'] as { metadata: { labels: Json }; spec: Json };
  const [container = {}] = template.spec['containers'] as Json[];
  return { deployment, labels: template.metadata.labels, pod: template.spec, container };
}

/** What the program makes of its arguments. */
export function configOf(args: readonly string[]): ReturnType<typeof readConfig> {
  const flags = args.map((arg): [string, string] => {
    const [, name = '', value = ''] = /^--([^=]+)=(.*)$/.exec(arg) ?? expect.fail(`${arg} is not a flag with a value`);
    return [name.replace(/-(.)/g, (__, letter: string) => letter.toUpperCase()), value];
  });
  return readConfig({ flags: Object.fromEntries(flags), env: {} });
}
