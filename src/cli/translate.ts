import { Command, Option } from 'commander';
import { stringify } from 'yaml';
import { readMeshSettings } from '../config/config.ts';
import { meshSettingNames, proxySettingNames } from '../config/settings.ts';
import { nodeOfId, readNodeFile, withLabels } from './node-file.ts';
import { printable, printFinding } from './printable.ts';
import { type ServedType, servedTypeNames } from '../envoy/encode/served-types.ts';
import type { ExplainedResource, ResourceJson } from './program.ts';
import { UsageError } from './usage-error.ts';
import { addSettings, type CommandFile, originsOf } from './world.ts';

interface Options {
  readonly proxy?: string;
  readonly node?: string;
  readonly labels?: string;
  readonly strict?: true;
  readonly explain?: true;
  readonly type?: ServedType;
  readonly name?: string;
  readonly output: 'yaml' | 'json';
}

export const translateCommand: CommandFile = (world, done) => {
  const command = new Command('translate')
    .description('print what a proxy would get from the objects in files, without a cluster')
    .argument('<path...>', 'directories or files')
    .addOption(
      new Option('--proxy <id>', 'id of the proxy, like sidecar~10.0.0.1~pod.ns~ns.svc.cluster.local').conflicts(
        'node',
      ),
    )
    .option('--node <file>', "the proxy's Envoy node, in JSON or YAML")
    .option('--labels <k=v,...>', 'labels of the proxy, for the selectors of Gateways, Sidecars and routes')
    .option('--strict', 'exit with 1 if anything in the files has errors')
    .addOption(new Option('--type <type>', 'only resources of this type').choices(servedTypeNames))
    .option('--name <name>', 'only resources of this name')
    .option('--explain', 'print which lines of which objects made each resource, virtual host and route')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml'));
  addSettings(command, [...meshSettingNames, ...proxySettingNames]);
  command.addHelpText(
    'after',
    `\nPrints one document {${servedTypeNames.join(', ')}}: what a server would send to the proxy, without what has errors.` +
      '\nErrors go to standard error. Exits with 1 if the proxy would be refused or has no resource with this --name.',
  );
  return command.action(async (paths: string[], flags: Record<string, unknown>) => {
    const options = flags as unknown as Options;
    const { proxy: id, node: file } = options;
    if (id === undefined && file === undefined) throw new UsageError('specify --proxy ID or --node FILE');
    const node = file === undefined ? nodeOfId(id!) : await readNodeFile(file);
    const proxy = options.labels === undefined ? node : withLabels(node, options.labels);
    const mesh = readMeshSettings(originsOf(flags, world));
    const program = await world.program();
    const explain = options.explain === true;
    const { resources, explained, findings, refusal, remark } = await program.translate({
      paths,
      proxy,
      mesh,
      explain,
    });
    const document = select(explained ?? resources, options);
    if (options.output === 'json') world.out(`${JSON.stringify(document, undefined, 2)}\n`);
    else world.out(stringify(document, { lineWidth: 0, aliasDuplicateObjects: false }));
    for (const finding of findings) world.err(`${printFinding(finding)}\n`);
    for (const sentence of [refusal, remark]) if (sentence !== undefined) world.err(`${printable(sentence)}\n`);
    const found = Object.values(document).some((list) => list.length > 0);
    const missing = options.name !== undefined && !found;
    if (missing) world.err(`the proxy gets no resource named ${options.name}\n`);
    const wrong = options.strict === true && findings.some(({ severity }) => severity === 'error');
    done(refusal !== undefined || missing || wrong ? 1 : 0);
  });
};

/** A resource, or what it was made from. */
type Named = ResourceJson | ExplainedResource;

function select(
  resources: Readonly<Record<ServedType, readonly Named[]>>,
  { type, name }: Options,
): Record<string, readonly Named[]> {
  const types = type === undefined ? servedTypeNames : [type];
  const wanted = (resource: Named): boolean => name === undefined || nameOf(resource) === name;
  return Object.fromEntries(types.map((each) => [each, resources[each].filter(wanted)]));
}

/** A ClusterLoadAssignment is named after its cluster. */
function nameOf(resource: Named): unknown {
  return 'name' in resource ? resource.name : (resource as ResourceJson)['clusterName'];
}
