import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { isObject } from '../../src/api/json.ts';
import { runCli } from '../../src/cli/cli.ts';
import { PAGES, read } from './markdown.ts';

/** The text of a page without its blocks. */
const prose = (page: string): string => read(page).replaceAll(/^ *```[^]*?^ *```/gm, '');

const COMMANDS = [
  ...['serve', 'check', 'translate', 'explain access', 'status', 'clusters', 'clusters identities', 'identity'],
  ...['release', 'record', 'replay', 'inject', 'agent', 'intercept'],
];

/** Options of helm, istioctl and Cilium. */
const ELSEWHERE = ['--set', '--xds-label', '--all', '--use-kube', '--clustermesh-service-v'];

test('every option that the pages name is one of Fairlead', async () => {
  let help = '';
  for (const command of COMMANDS)
    await runCli([...command.split(' '), '--help'], {
      ...{ program: () => Promise.reject(new Error('help needs no program')), env: {} },
      ...{ out: (text) => void (help += text), err: (text) => void (help += text) },
      signal: new AbortController().signal,
    });
  const named = PAGES.flatMap((page) =>
    [...prose(page).matchAll(/`(--[a-z-]+)[^`]*`/g)].map(([, option = '']) => ({ page, option })),
  );
  expect(named.length).toBeGreaterThan(30);
  const known = new Set([...(help.match(/--[a-z-]+/g) ?? []), ...ELSEWHERE]);
  expect(named.filter(({ option }) => !known.has(option))).toEqual([]);
});

test('every value that the pages name as one of the chart exists', () => {
  const values = parse(read('charts/fairlead/values.yaml')) as unknown;
  const exists = (name: string): boolean => {
    let place = values;
    for (const step of name.split('.')) {
      if (!isObject(place) || !Object.hasOwn(place, step)) return false;
      place = place[step];
    }
    return true;
  };
  const named = PAGES.flatMap((page) =>
    [...prose(page).matchAll(/\(chart(?: value)?:? `([A-Za-z.]+)[^`]*`/g)].map(([, name = '']) => ({ page, name })),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter(({ name }) => !exists(name))).toEqual([]);
});
