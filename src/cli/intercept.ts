import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { Command, Option } from 'commander';
import { applyInterception } from '../interception/apply.ts';
import { type InterceptionRequest, interceptionFlags, readInterception } from '../interception/flags.ts';
import { iptablesRules } from '../interception/iptables.ts';
import { nftRuleset } from '../interception/nftables.ts';
import type { Family, InterceptionOptions } from '../interception/options.ts';
import { nameServersOf } from '../interception/resolv-conf.ts';
import { UsageError } from './usage-error.ts';
import type { CommandFile, World } from './world.ts';

/** Runs before a Pod's other containers. Not loaded with it: the rest of the program. */
export const interceptCommand: CommandFile = (world, done) => {
  const command = new Command('intercept')
    .description('redirect the connections of this network namespace to its proxy (root with NET_ADMIN)')
    .addOption(
      new Option('-m, --istio-inbound-interception-mode <mode>', 'REDIRECT, or NONE to change nothing').default(
        'REDIRECT',
      ),
    )
    .option('--redirect-dns', "let the agent answer requests to the Pod's name servers (env: ISTIO_META_DNS_CAPTURE)")
    .option('--capture-all-dns', 'let the agent answer requests to any name server')
    .option('--drop-invalid', 'drop packets that belong to no connection (env: INVALID_DROP)')
    .addOption(
      new Option('--families <families>', 'what the proxy listens on')
        .choices(['ipv4', 'ipv6', 'both'])
        .default(undefined, 'the families of the addresses of this namespace'),
    )
    .option('--resolv-conf <file>', "the Pod's name servers", '/etc/resolv.conf')
    .addOption(
      new Option('--print [format]', 'print the rules instead').choices(['nftables', 'iptables']).preset('nftables'),
    );
  for (const { flags, help, variable } of Object.values(interceptionFlags))
    command.option(flags, variable === undefined ? help : `${help} (env: ${variable})`);
  command.addHelpText(
    'after',
    '\nRules from an earlier run are replaced, except with NONE. Uses nft, or iptables where there is no nft.',
  );
  return command.action(async (flags: Readonly<Record<string, unknown>>) => {
    const read = readInterception(requestOf(flags, world));
    if ('problems' in read) throw new UsageError(read.problems.join('; '));
    const { options } = read;
    if (options === undefined) world.err('Interception mode NONE: nothing was changed\n');
    else if (flags['print'] !== undefined) world.out(printed(options, flags['print'] === 'iptables'));
    else
      world.err(
        `Connections of this Pod pass its proxy: rules applied with ${await applyInterception(options, world.signal)}\n`,
      );
    done(0);
  });
};

function requestOf(flags: Readonly<Record<string, unknown>>, { env }: World): InterceptionRequest {
  const texts = Object.entries(interceptionFlags).flatMap(([name, { flags: text, variable }]) => {
    const given = flags[nameOf(text)] ?? (variable === undefined ? undefined : env[variable]);
    return typeof given === 'string' ? [[name, given] as const] : [];
  });
  const isSet = (flag: string, variable: string): boolean => flags[flag] === true || env[variable] === 'true';
  const dns =
    flags['captureAllDns'] === true ? 'all' : isSet('redirectDns', 'ISTIO_META_DNS_CAPTURE') ? 'servers' : 'off';
  return {
    texts: Object.fromEntries(texts),
    mode: String(flags['istioInboundInterceptionMode']),
    dropInvalid: isSet('dropInvalid', 'INVALID_DROP'),
    dns,
    servers: dns === 'servers' ? serversIn(String(flags['resolvConf'])) : [],
    families: familiesOf(flags['families']),
  };
}

/** As commander does: the long flag in camel case. */
function nameOf(flags: string): string {
  return new Option(flags).attributeName();
}

function serversIn(file: string): readonly string[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`--resolv-conf: ${(error as Error).message}`);
  }
  return nameServersOf(text);
}

/** An agent tells the control plane all addresses of its Pod; the proxy listens on the families of these. */
function familiesOf(flag: unknown): readonly Family[] {
  if (flag === 'ipv4') return ['ip'];
  if (flag === 'ipv6') return ['ip6'];
  if (flag === 'both') return ['ip', 'ip6'];
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, address }) => !internal && !/^fe[89ab]/i.test(address));
  const found = (['ip', 'ip6'] as const).filter((family) =>
    addresses.some((address) => address.family === (family === 'ip' ? 'IPv4' : 'IPv6')),
  );
  return found.length === 0 ? ['ip', 'ip6'] : found;
}

function printed(options: InterceptionOptions, asIptables: boolean): string {
  if (!asIptables) return nftRuleset(options);
  return options.families
    .map(
      (family) =>
        `# ${family === 'ip' ? 'iptables' : 'ip6tables'}-restore --noflush\n${iptablesRules(options, family, '')}`,
    )
    .join('');
}
