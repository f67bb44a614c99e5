import { Command, Option } from 'commander';
import { readClusterSettings } from '../config/config.ts';
import { clusterSettingNames } from '../config/settings.ts';
import type { RotationReport } from '../identity/rotation-report.ts';
import { printable } from './printable.ts';
import { addSettings, type CommandFile, originsOf } from './world.ts';

export const identityCommand: CommandFile = (world, done) => {
  const command = new Command('identity')
    .description('show the root certificates that the proxies of a cluster trust, and the progress of a rotation')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  addSettings(command, clusterSettingNames);
  return command.action(async (options: Record<string, unknown>) => {
    const cluster = readClusterSettings(originsOf(options, world));
    const program = await world.program();
    const report = await program.identity(cluster, world.signal);
    if (report === undefined) {
      world.err(
        `error: ConfigMap ${cluster.rootNamespace}/istio-ca-root-cert does not have the state of a rotation; is Fairlead running, with statusWrites on?\n`,
      );
      done(1);
      return;
    }
    world.out(options['output'] === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : textOf(report));
    done(0);
  });
};

function textOf({ step, since, waitingFor, roots }: RotationReport): string {
  const lines = [`${step} since ${since}`, ...(waitingFor === undefined ? [] : [`Waiting for ${waitingFor}`]), ''];
  for (const { role, subject, fingerprint, expires, since: trusted, until } of roots)
    lines.push(
      `${role.padEnd(9)} ${subject}`,
      `          SHA-256      ${fingerprint}`,
      `          valid until  ${expires}`,
      `          trusted      since ${trusted}${until === undefined ? '' : `, until ${until}`}`,
    );
  return `${lines.map(printable).join('\n')}\n`;
}
