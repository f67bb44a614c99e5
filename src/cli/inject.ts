import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { Command, Option } from 'commander';
import { Document } from 'yaml';
import { type Json, isObject } from '../api/json.ts';
import { splitDocuments } from '../directory/split.ts';
import { CONFIG_FILE, type InjectionConfig, loadInjection } from '../injection/configuration.ts';
import { type Injector, createInjector } from '../injection/injector.ts';
import { type InjectedObject, type Outcome, injectObject } from '../injection/workload-objects.ts';
import { version } from '../base/version.ts';
import { type ProxyConfigModel, proxyConfigsFor } from '../model/proxy-config.ts';
import { readDocument } from '../yaml/document.ts';
import { printable } from './printable.ts';
import { proxyConfigsIn } from './proxy-configs.ts';
import { UsageError } from './usage-error.ts';
import type { CommandFile, World } from './world.ts';

/** What `fairlead serve` would make of Pods, without a cluster. */
export const injectCommand: CommandFile = (world, done) => {
  const command = new Command('inject')
    .description('add sidecars to the Pods in files, as the webhook does when they are created')
    .requiredOption('-f, --filename <file...>', 'files of YAML or JSON; -: standard input')
    .option('--injection-directory <path>', 'templates and settings (default: those of the chart)')
    .option('--mesh-config <file>', 'the mesh config as YAML')
    .option('-n, --namespace <name>', 'namespace of objects that do not name theirs', 'default')
    .option('--image <name>', 'image of the proxy', `fairlead-proxy:${version}`)
    .option('--discovery-address <address>', 'where proxies find the control plane', 'fairlead.istio-system.svc:15012')
    .addOption(
      new Option('--native-sidecars <on|off>', 'proxies as init containers').choices(['on', 'off']).default('on'),
    );
  command.addHelpText(
    'after',
    '\nPrints everything that the files have; on standard error, what was left as it is, and why. ProxyConfigs in\n' +
      'the files count. Prints nothing and exits with 1 if the webhook would refuse a Pod. --image,\n' +
      '--discovery-address and --native-sidecars have no effect with --injection-directory, which has the settings.',
  );
  return command.action(async (options: Options) => {
    const injector = createInjector(configOf(options));
    const meshConfig = options.meshConfig === undefined ? {} : meshConfigIn(options.meshConfig);
    const documents: string[] = [];
    let refused = false;
    const given: { readonly text: string; readonly line: number; readonly place: string }[] = [];
    for (const file of options.filename)
      for (const { text, line } of splitDocuments(await readInput(file)))
        given.push({ text, line, place: `${file}:${line}` });
    const proxyConfigs = proxyConfigsIn(given, options.namespace, (place, problem) =>
      world.err(`${printable(`${place}: ${problem}`)}\n`),
    );
    const surroundings = { injector, meshConfig, proxyConfigs };
    for (const { text, line, place } of given) {
      const injected = injectDocument(text, place, line, surroundings, options.namespace);
      refused = report(injected.outcomes, place, world) || refused;
      // Before the first marker there is often nothing.
      if (injected.text.trim() !== '') documents.push(injected.text);
    }
    if (!refused) world.out(documents.map(marked).join(''));
    done(refused ? 1 : 0);
  });
};

interface Options {
  readonly filename: readonly string[];
  readonly injectionDirectory?: string;
  readonly meshConfig?: string;
  readonly namespace: string;
  readonly image: string;
  readonly discoveryAddress: string;
  readonly nativeSidecars: 'on' | 'off';
}

function configOf(options: Options): InjectionConfig {
  const { injectionDirectory } = options;
  const directory = injectionDirectory ?? templatesOfChart();
  const files = new Map(
    reading(directory, () =>
      readdirSync(directory)
        .filter((name) => /\.ya?ml$/.test(name))
        .map((name) => [name, readFileSync(join(directory, name), 'utf8')] as const),
    ),
  );
  if (injectionDirectory === undefined) files.set(CONFIG_FILE, settingsOf(options));
  const loaded = loadInjection(files);
  if ('config' in loaded) return loaded.config;
  const lines = loaded.problems.map(({ file, line, message }) => `${join(directory, file)}:${line}: ${message}`);
  throw new UsageError(lines.join('; '));
}

function settingsOf({ image, discoveryAddress, nativeSidecars }: Options): string {
  return JSON.stringify({ nativeSidecars: nativeSidecars === 'on', proxy: { image, discoveryAddress } });
}

/** Beside the bundle, or where the chart has them. */
function templatesOfChart(): string {
  const bundled = join(import.meta.dirname, 'injection');
  return existsSync(join(bundled, 'sidecar.yaml'))
    ? bundled
    : join(import.meta.dirname, '../../charts/fairlead/files/injection');
}

function meshConfigIn(file: string): Json {
  const read = readDocument(reading(file, () => readFileSync(file, 'utf8')));
  if ('broken' in read) throw new UsageError(`${file}:${read.broken.line}: ${read.broken.message}`);
  if (!isObject(read.value)) throw new UsageError(`${file}: must be a map of fields of the mesh config`);
  return read.value;
}

async function readInput(file: string): Promise<string> {
  return file === '-' ? textOf(process.stdin) : reading(file, () => readFileSync(file, 'utf8'));
}

function reading<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`);
  }
}

/** What of a mesh an injection depends on. */
interface Surroundings {
  readonly injector: Injector;
  readonly meshConfig: Json;
  readonly proxyConfigs: readonly ProxyConfigModel[];
}

function rootNamespaceOf({ rootNamespace }: Json): string {
  return typeof rootNamespace === 'string' && rootNamespace !== '' ? rootNamespace : 'istio-system';
}

/** The text itself where nothing changes. */
function injectDocument(
  text: string,
  place: string,
  line: number,
  { injector, meshConfig, proxyConfigs }: Surroundings,
  namespace: string,
): { readonly text: string; readonly outcomes: readonly Outcome[] } {
  const read = readDocument(text);
  if ('broken' in read)
    throw new UsageError(`${place.replace(/\d+$/, String(line + read.broken.line - 1))}: ${read.broken.message}`);
  if (!isObject(read.value)) return { text, outcomes: [] };
  const injected: InjectedObject = injectObject(read.value, namespace, (pod, name, workload) =>
    injector.inject({
      pod,
      // What the file is given for.
      namespace: { name, labels: { 'istio-injection': 'enabled' } },
      meshConfig,
      proxyConfigsOf: (labels) =>
        proxyConfigsFor(proxyConfigs, { namespace: name, labels }, rootNamespaceOf(meshConfig)),
      parameters: { env: {} },
      ...(workload !== undefined && { workload }),
    }),
  );
  if (!injected.outcomes.some(({ result }) => 'pod' in result)) return { text, outcomes: injected.outcomes };
  const document = new Document(injected.object, { aliasDuplicateObjects: false });
  return { text: document.toString({ lineWidth: 0 }), outcomes: injected.outcomes };
}

/** Returns whether a Pod is refused. */
function report(outcomes: readonly Outcome[], place: string, world: World): boolean {
  for (const { object, result } of outcomes) {
    const say = (text: string): void => world.err(`${printable(`${place}: ${object}: ${text}`)}\n`);
    if ('refused' in result) say(result.refused);
    else {
      if ('untouched' in result) say(`left as it is: ${result.untouched}`);
      else for (const warning of result.warnings) say(`warning: ${warning}`);
    }
  }
  return outcomes.some(({ result }) => 'refused' in result);
}

function marked(text: string): string {
  const ended = text.endsWith('\n') || text === '' ? text : `${text}\n`;
  return /^---[ \t\r\n]/.test(ended) ? ended : `---\n${ended}`;
}
