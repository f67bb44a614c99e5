import { Command, Option } from 'commander';
import { readMeshSettings } from '../config/config.ts';
import { meshSettingNames } from '../config/settings.ts';
import { findingAsJson, printCounts, printFinding } from './printable.ts';
import type { CheckResult } from './program.ts';
import { addSettings, type CommandFile, originsOf } from './world.ts';

export const checkCommand: CommandFile = (world, done) => {
  const command = new Command('check')
    .description('check the objects in files, without a cluster')
    .argument('<path...>', 'directories or files')
    .option('--complete', 'treat the files as complete: references to anything outside them are errors, not warnings')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  addSettings(command, meshSettingNames);
  command.addHelpText(
    'after',
    '\nPrints file:line: kind/namespace/name: field: sentence. Exits with 1 if there are errors.',
  );
  return command.action(async (paths: string[], options: Record<string, unknown>) => {
    const mesh = readMeshSettings(originsOf(options, world));
    const program = await world.program();
    const result = await program.check({ paths, complete: options['complete'] === true, mesh });
    if (options['output'] === 'json') world.out(`${JSON.stringify(asJson(result), undefined, 2)}\n`);
    else {
      for (const finding of result.findings) world.out(`${printFinding(finding)}\n`);
      world.err(`${printCounts(result)}\n`);
    }
    done(result.findings.some(({ severity }) => severity === 'error') ? 1 : 0);
  });
};

function asJson({ objects, ignored, findings }: CheckResult): object {
  return {
    objects,
    ignored,
    errors: findings.filter(({ severity }) => severity === 'error').length,
    warnings: findings.filter(({ severity }) => severity === 'warning').length,
    findings: findings.map(findingAsJson),
  };
}
