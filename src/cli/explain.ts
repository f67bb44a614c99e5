import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { Command, Option } from 'commander';
import { readAccessSettings } from '../config/config.ts';
import { meshSettingNames, sourceSettingNames } from '../config/settings.ts';
import { findingAsJson, printable, printFinding } from './printable.ts';
import type { AccessAnswer } from './program.ts';
import { UsageError } from './usage-error.ts';
import { addSettings, type CommandFile, originsOf } from './world.ts';

interface Options {
  readonly from?: string;
  readonly to: string;
  readonly port?: string;
  readonly method: string;
  readonly path: string;
  readonly host?: string;
  readonly header?: readonly string[];
  readonly sourceIp?: string;
  readonly jwt?: string;
  readonly output: 'text' | 'json';
}

export const explainCommand: CommandFile = (world, done) =>
  new Command('explain').description('explain a decision').helpCommand(false).addCommand(accessCommand(world, done));

const accessCommand: CommandFile = (world, done) => {
  const command = new Command('access')
    .description('say whether a workload accepts a request, and which rule of which policy decides')
    .option(
      '--from <identity>',
      'the caller: spiffe://... or namespace/account (default: a client without an identity)',
    )
    .requiredOption(
      '--to <workload>',
      'the workload called: namespace/name of a Pod, Deployment, WorkloadEntry or Service',
    )
    .option('--port <number>', 'the port on which the workload listens, or one of its Service (default: the only one)')
    .option('--method <method>', 'HTTP method', 'GET')
    .option('--path <path>', 'path, with its query', '/')
    .option('--host <host>', 'Host header, as it is sent')
    .option('--header <name:value>', 'another header; may be repeated', appended)
    .option('--source-ip <address>', 'address of the client')
    .option('--jwt <file>', 'file with the token of the request')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  addSettings(command, [...sourceSettingNames, ...meshSettingNames, 'jwksAllowedNetworks']);
  command.addHelpText(
    'after',
    '\nReads the cluster, or with --directory, files. Exits with 0 if the request is allowed, 1 if it is denied, and 2 if' +
      '\nthat is unknown. Clients in the mesh are assumed to use mutual TLS wherever the workload accepts it.',
  );
  return command.action(async (flags: Record<string, unknown>) => {
    const options = flags as unknown as Options;
    const question = {
      ...readAccessSettings(originsOf(flags, world)),
      from: options.from === undefined ? undefined : checkedIdentity(options.from),
      to: readWorkload(options.to),
      port: options.port === undefined ? undefined : readPort(options.port),
      method: options.method,
      path: checkedPath(options.path),
      host: options.host,
      headers: (options.header ?? []).map(readHeader),
      sourceIp: options.sourceIp === undefined ? undefined : checkedAddress(options.sourceIp),
      token: options.jwt === undefined ? undefined : await readToken(options.jwt),
    };
    const program = await world.program();
    const answer = await program.explainAccess(question, world.signal);
    if (options.output === 'json')
      world.out(`${JSON.stringify({ ...answer, findings: answer.findings.map(findingAsJson) }, undefined, 2)}\n`);
    else world.out(printAnswer(answer));
    if (options.output === 'text') for (const finding of answer.findings) world.err(`${printFinding(finding)}\n`);
    done({ allowed: 0, denied: 1, unknown: 2 }[answer.verdict]);
  });
};

function appended(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** `denied with 403: a rule denies it`, then a line for each place, and for each remark. */
function printAnswer({ verdict, answer, reason, by, remarks }: AccessAnswer): string {
  const how = { closed: ': the connection is closed', 401: ' with 401', 403: ' with 403', none: '' }[answer ?? 'none'];
  const lines = [
    `${verdict}${how}: ${reason}`,
    ...by.map((place) => `  ${place}`),
    ...remarks.map((text) => `note: ${text}`),
  ];
  return lines.map((line) => `${printable(line)}\n`).join('');
}

function checkedIdentity(text: string): string {
  if (/^spiffe:\/\/[^/]+\/.+$/.test(text) || /^[^/\s]+\/[^/\s]+$/.test(text)) return text;
  throw new UsageError(`--from: ${JSON.stringify(text)} must be spiffe://... or namespace/account`);
}

function readWorkload(text: string): { readonly namespace: string; readonly name: string } {
  const [, namespace, name] = /^([^/\s]+)\/([^/\s]+)$/.exec(text) ?? [];
  if (namespace !== undefined && name !== undefined) return { namespace, name };
  throw new UsageError(`--to: ${JSON.stringify(text)} must be namespace/name`);
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new UsageError(`--port: ${JSON.stringify(text)} must be a number from 1 to 65535`);
}

function checkedPath(text: string): string {
  if (/^\/[^\s#]*$/.test(text)) return text;
  throw new UsageError(`--path: ${JSON.stringify(text)} must begin with / and have neither spaces nor #`);
}

function readHeader(text: string): readonly [string, string] {
  const [, name, value] = /^([-!#$%&'*+.^_`|~0-9A-Za-z]+):\s*(.*)$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  throw new UsageError(`--header: ${JSON.stringify(text)} must be name:value`);
}

function checkedAddress(text: string): string {
  if (isIP(text) !== 0) return text;
  throw new UsageError(`--source-ip: ${JSON.stringify(text)} is not an IP address`);
}

async function readToken(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (cause) {
    throw new UsageError(`--jwt ${file}: cannot be read: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
}
