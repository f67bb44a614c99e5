import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Document, parseAllDocuments, visit } from 'yaml';
import type { ProxyConfig } from '../../src/api/gen/proxy-config.gen.ts';
import type { Json } from '../../src/api/json.ts';
import { loadInjection } from '../../src/injection/configuration.ts';
import {
  type InjectionRequest,
  type InjectionResult,
  type Injector,
  createInjector,
} from '../../src/injection/injector.ts';
import { proxyConfigsFor } from '../../src/model/proxy-config.ts';
import { reconcileProxyConfig } from '../../src/reconcilers/proxy-config/proxy-config.ts';

const directory = join(import.meta.dirname, 'cases');
const templates = join(import.meta.dirname, '../../charts/fairlead/files/injection');

/** One file of `cases`: in the first document all that is not as usual, in the second one the Pod. */
export interface InjectionCase {
  readonly injector: Injector;
  readonly request: InjectionRequest;
}

interface Unusual {
  /** Settings that differ from those of {@link settingsWith}. */
  readonly config?: Json & { readonly proxy?: Json };
  /** By file. */
  readonly templates?: Readonly<Record<string, string>>;
  readonly namespace?: InjectionRequest['namespace'];
  readonly meshConfig?: Json;
  readonly parameters?: InjectionRequest['parameters'];
  /** Objects of the cluster, whose root namespace is istio-system. */
  readonly proxyConfigs?: readonly ProxyConfig[];
}

export function caseNames(): string[] {
  return globSync('*.yaml', { cwd: directory })
    .filter((file) => !file.endsWith('.expected.yaml'))
    .map((file) => file.replace(/\.yaml$/, ''))
    .sort();
}

export function orphans(): string[] {
  return globSync('*.expected.yaml', { cwd: directory })
    .filter((file) => !caseNames().includes(file.replace(/\.expected\.yaml$/, '')))
    .map((file) => join(directory, file));
}

export const expectedFile = (name: string): string => join(directory, `${name}.expected.yaml`);

export function readCase(name: string): InjectionCase {
  const documents = parseAllDocuments(readFileSync(join(directory, `${name}.yaml`), 'utf8'));
  const [first, pod] = documents.map((document) => {
    if (document.errors.length > 0) throw new Error(`${name}.yaml: ${document.errors[0]!.message}`);
    return document.toJS() as Json;
  });
  const unusual = first as Unusual;
  const namespace = unusual.namespace ?? { name: 'shop', labels: { 'istio-injection': 'enabled' } };
  const models = (unusual.proxyConfigs ?? []).flatMap((each) => reconcileProxyConfig(each, 'test').models);
  return {
    injector: injectorWith(unusual.config, unusual.templates),
    request: {
      pod: pod ?? {},
      namespace,
      meshConfig: unusual.meshConfig ?? {},
      parameters: { env: {}, ...unusual.parameters },
      proxyConfigsOf: (labels) => proxyConfigsFor(models, { namespace: namespace.name, labels }, 'istio-system'),
    },
  };
}

/** Of the chart's templates and more. */
export function injectorWith(config: Unusual['config'] = {}, more: Unusual['templates'] = {}): Injector {
  const chart = globSync('*.yaml', { cwd: templates }).map(
    (file) => [basename(file), readFileSync(join(templates, file), 'utf8')] as const,
  );
  const loaded = loadInjection(new Map([...chart, ...Object.entries(more), ['config.yaml', settingsWith(config)]]));
  if ('config' in loaded) return createInjector(loaded.config);
  throw new Error(loaded.problems.map(({ file, line, message }) => `${file}:${line}: ${message}`).join('\n'));
}

function settingsWith({ proxy, ...config }: NonNullable<Unusual['config']>): string {
  const usual = { image: 'fairlead-proxy:1', discoveryAddress: 'fairlead.istio-system.svc:15012' };
  return JSON.stringify({ nativeSidecars: true, ...config, proxy: { ...usual, ...proxy } });
}

/** YAML in which what is short is on one line. */
export function printResult(result: InjectionResult): string {
  const document = new Document(result, { aliasDuplicateObjects: false });
  visit(document.contents, {
    Collection: (_, node) => {
      node.flow = JSON.stringify(node).length <= 100;
      return node.flow ? visit.SKIP : undefined;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}
