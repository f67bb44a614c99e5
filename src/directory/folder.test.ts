import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type FolderContent, followFolder } from './folder.ts';
import { temporaryDirectory } from './testing/temporary-directory.ts';

interface Following {
  readonly path: string;
  /** Everything that was found, in order. */
  readonly seen: readonly Shown[];
  /** Resolves once it was found. */
  until(wanted: Shown): Promise<void>;
}

type Shown = Readonly<Record<string, string>>;

async function follow(path: string): Promise<Following> {
  const ending = new AbortController();
  const seen: Shown[] = [];
  let waiting: (() => void)[] = [];
  const folder = followFolder({
    path,
    mostFiles: 3,
    largestFile: 100,
    found(content) {
      seen.push(shown(content));
      for (const wake of waiting) wake();
    },
    signal: ending.signal,
    pollInterval: 50,
  });
  onTestFinished(async () => {
    ending.abort();
    await folder.ended;
  });
  await folder.read;
  return {
    path,
    seen,
    until: (wanted) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (JSON.stringify(seen.at(-1)) !== JSON.stringify(wanted)) return;
          waiting = waiting.filter((each) => each !== look);
          resolve();
        };
        waiting.push(look);
        look();
      }),
  };
}

function shown({ files, ignored, problem }: FolderContent): Shown {
  return {
    ...Object.fromEntries(Array.from(files, ([name, each]) => [name, 'text' in each ? each.text : each.problem])),
    ...(ignored > 0 && { ignored: String(ignored) }),
    ...(problem !== undefined && { problem }),
  };
}

test('files come, change and go', async () => {
  const path = await temporaryDirectory();
  await writeFile(join(path, 'a'), '1');
  await writeFile(join(path, '.hidden'), 'x');
  await mkdir(join(path, 'directory'));
  const { until } = await follow(path);
  await until({ a: '1' });
  await writeFile(join(path, 'b'), '2');
  await until({ a: '1', b: '2' });
  await writeFile(join(path, 'a'), '3');
  await until({ a: '3', b: '2' });
  await rm(join(path, 'a'));
  await until({ b: '2' });
});

test('a mounted Secret is replaced as a whole', async () => {
  const path = await temporaryDirectory();
  const version = async (name: string, files: Shown): Promise<void> => {
    await mkdir(join(path, name));
    for (const [file, text] of Object.entries(files)) await writeFile(join(path, name, file), text);
    await symlink(name, join(path, '..new'));
    await rename(join(path, '..new'), join(path, '..data'));
  };
  await version('..1', { a: '1', b: '1' });
  for (const name of ['a', 'b']) await symlink(join('..data', name), join(path, name));
  const { seen, until } = await follow(path);
  await until({ a: '1', b: '1' });
  await version('..2', { a: '2', b: '2' });
  await until({ a: '2', b: '2' });
  await rm(join(path, '..1'), { recursive: true });
  await version('..3', { a: '2', b: '3' });
  await until({ a: '2', b: '3' });
  expect(seen).toEqual([
    { a: '1', b: '1' },
    { a: '2', b: '2' },
    { a: '2', b: '3' },
  ]);
});

test('a file that is missing for a moment, as while editors save it, is not gone', async () => {
  const path = await temporaryDirectory();
  await writeFile(join(path, 'a'), '1');
  const { seen, until } = await follow(path);
  await rename(join(path, 'a'), join(path, '.a'));
  await writeFile(join(path, 'a'), '2');
  await until({ a: '2' });
  expect(seen).toEqual([{ a: '1' }, { a: '2' }]);
});

test('a directory that is not there keeps what was known', async () => {
  const path = join(await temporaryDirectory(), 'later');
  const { until } = await follow(path);
  const problem = 'no such file or directory';
  await until({ problem });
  await mkdir(path);
  await writeFile(join(path, 'a'), '1');
  await until({ a: '1' });
  await rename(path, `${path}.away`);
  await until({ a: '1', problem });
  await rename(`${path}.away`, path);
  await until({ a: '1' });
});

test('long files, and files beyond those that are read, are named and counted', async () => {
  const path = await temporaryDirectory();
  await writeFile(join(path, 'a'), 'x'.repeat(101));
  for (const name of ['b', 'c', 'd', 'e']) await writeFile(join(path, name), name);
  const { until } = await follow(path);
  await until({ a: 'is longer than 100 bytes', b: 'b', c: 'c', ignored: '2' });
});
