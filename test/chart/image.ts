import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './chart.ts';

export interface Instruction {
  readonly name: string;
  readonly argument: string;
}

/** The Dockerfile by stages, with its arguments filled in. */
export function dockerfile(name = 'Dockerfile'): Instruction[][] {
  return stagesOf(readFileSync(join(ROOT, name), 'utf8'));
}

export function stagesOf(dockerfile: string): Instruction[][] {
  const text = dockerfile.replace(/\\\n\s*/g, '');
  const stages: Instruction[][] = [];
  const values = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, name = '', argument = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const [, key, value] = /^(\w+)=(.*)$/.exec(argument) ?? [];
    if (name === 'ARG' && key !== undefined && value !== undefined) values.set(key, value);
    if (name === 'FROM') stages.push([]);
    const filled = argument.replace(/\$\{(\w+)\}/g, (all, variable: string) => values.get(variable) ?? all);
    if (name !== '') stages.at(-1)?.push({ name, argument: filled });
  }
  return stages;
}

/** How a container of the image is started, where the image's directory of the program is this one. */
export function entryPoint(directory: string): string[] {
  const instruction = dockerfile()
    .at(-1)
    ?.find(({ name }) => name === 'ENTRYPOINT');
  const words = JSON.parse(instruction?.argument ?? '[]') as string[];
  return words.map((word) => word.replace(/^\/app\//, `${directory}/`));
}
