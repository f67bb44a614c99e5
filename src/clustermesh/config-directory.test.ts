import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../base/clock.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ConfigDirectory, type ConfigDirectoryOptions } from './config-directory.ts';

let directory: string;
let ending: AbortController;
let changes: number;
let onChange: () => void;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'clustermesh-'));
  ending = new AbortController();
  changes = 0;
  onChange = () => undefined;
});

afterEach(async () => {
  ending.abort();
  await rm(directory, { recursive: true });
});

function follow(options: Partial<ConfigDirectoryOptions> = {}): ConfigDirectory {
  return new ConfigDirectory({
    directory,
    ownCluster: 'home',
    clock: systemClock,
    onChange: () => {
      changes++;
      onChange();
    },
    signal: ending.signal,
    ...options,
  });
}

const config = (endpoint: string): string => `endpoints:\n- ${endpoint}\n`;

const put = (name: string, content: string): Promise<void> => writeFile(join(directory, name), content);

/** Name -> endpoint, or `none`; and what is refused. */
function shown({ clusters }: ConfigDirectory): Record<string, string> {
  return Object.fromEntries(
    Array.from(clusters, ([name, { access, refused }]) => [
      name,
      [access?.endpoints.join() ?? 'none', ...(refused ? [`${refused.field} ${refused.message}`.trim()] : [])].join(
        '; ',
      ),
    ]),
  );
}

/** Resolves when the clusters are these. */
function become(found: ConfigDirectory, expected: Record<string, string>): Promise<void> {
  return new Promise((resolve) => {
    onChange = () => {
      if (JSON.stringify(shown(found)) === JSON.stringify(expected)) resolve();
    };
    onChange();
  });
}

describe('a look', () => {
  test('finds the files that describe clusters', async () => {
    await put('east', config('https://east:2379'));
    await put('west', config('https://west:2379'));
    await put('home', config('https://home:2379'));
    await put('common-etcd-client.key', '-----BEGIN PRIVATE KEY-----');
    await put('notes', 'nothing about it');
    await put('.east.swp', config('https://swap:2379'));
    await mkdir(join(directory, 'south'));
    execFileSync('mkfifo', [join(directory, 'pipe')]);
    await symlink('/dev/zero', join(directory, 'endless'));
    await symlink('nowhere', join(directory, 'gone'));
    const found = follow();
    expect(await found.look()).toBe(true);
    expect(shown(found)).toEqual({ east: 'https://east:2379', west: 'https://west:2379' });
    expect(found.refusals).toEqual([]);
    expect(changes).toBe(1);
  });

  test('says nothing if nothing has changed', async () => {
    await put('east', config('https://east:2379'));
    const found = follow();
    await found.look();
    await put('east', config('https://east:2379'));
    await put('other', 'text');
    await found.look();
    expect(changes).toBe(1);
  });

  test('takes a cluster away when its file is gone twice, or no longer describes one', async () => {
    await put('east', config('https://east:2379'));
    await put('west', config('https://west:2379'));
    const found = follow();
    await found.look();
    await rm(join(directory, 'east'));
    await put('west', '');
    expect(await found.look()).toBe(false);
    await put('west', config('https://west:2380'));
    expect(Object.keys(shown(found))).toEqual(['west', 'east'].sort());
    expect(await found.look()).toBe(true);
    expect(shown(found)).toEqual({ west: 'https://west:2380' });
  });

  test('keeps what a file said before when its content is refused', async () => {
    await put('east', config('https://east:2379'));
    await put('west', 'endpoints: 7');
    const found = follow();
    await found.look();
    await put('east', config('east'));
    await found.look();
    const refused = 'endpoints[0] is not a URL that begins with https:// or http://';
    expect(shown(found)).toEqual({ east: `https://east:2379; ${refused}`, west: 'none; endpoints is not a list' });
    await found.look();
    expect(changes).toBe(2);
    await put('east', config('https://east:2379'));
    await found.look();
    expect(shown(found)).toMatchObject({ east: 'https://east:2379' });
  });

  test('refuses names that clusters cannot have, and what is too long', async () => {
    await put('East', config('https://east:2379'));
    await put('default', config('https://east:2379'));
    await put('west', config('https://west:2379') + '#'.repeat(256 * 1024));
    const found = follow();
    await found.look();
    expect(shown(found)).toEqual({ west: 'none; has more than 262144 bytes' });
    expect(found.refusals.map(({ file }) => file)).toEqual(['East', 'default']);
    expect(found.refusals[0]?.message).toBe(
      'is not the name of a cluster: "East" is not a cluster name: use at most 32 lower-case letters, digits and dashes',
    );
  });

  test('keeps all clusters while the directory cannot be read', async () => {
    await put('east', config('https://east:2379'));
    const found = follow();
    await found.look();
    await rename(directory, `${directory}-away`);
    expect(await found.look()).toBe(true);
    await found.look();
    expect(shown(found)).toEqual({ east: 'https://east:2379' });
    expect(found.refusals).toEqual([{ file: directory, field: '', message: 'cannot be read: ENOENT' }]);
    await rename(`${directory}-away`, directory);
    await found.look();
    expect(found.refusals).toEqual([]);
  });

  test('is of so many clusters', async () => {
    await Promise.all(Array.from({ length: 513 }, (_, i) => put(`c${i + 1_000}`, config('https://c:1'))));
    const found = follow();
    await found.look();
    expect(found.clusters.size).toBe(511);
    expect(found.refusals.map(({ file, message }) => `${file} ${message}`)).toEqual([
      'c1511 is ignored: there are more than 511 clusters',
      'c1512 is ignored: there are more than 511 clusters',
    ]);
  });
});

/** The kubelet's way: all files at once, by another target of one link. */
async function mount(version: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(join(directory, version));
  await Promise.all(Object.entries(files).map(([name, content]) => put(join(version, name), content)));
  await symlink(version, join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
  for (const name of Object.keys(files))
    await symlink(join('..data', name), join(directory, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
}

describe('the directory is followed', () => {
  // What happens, happens because of a change: no look is due.
  const patient: Clock = { ...systemClock, after: (ms, fn) => (ms > 1_000 ? () => {} : systemClock.after(ms, fn)) };

  test('through swaps of a mounted Secret', async () => {
    await mount('..1', { east: config('https://east:1') });
    const found = follow({ clock: patient });
    const running = found.follow();
    await become(found, { east: 'https://east:1' });
    await mount('..2', { east: config('https://east:2'), west: config('https://west:2') });
    await become(found, { east: 'https://east:2', west: 'https://west:2' });
    await mount('..3', { west: config('https://west:2') });
    await become(found, { west: 'https://west:2' });
    ending.abort();
    await running;
  });

  test('through changes in place', async () => {
    const found = follow({ clock: patient });
    const running = found.follow();
    await put('east', config('https://east:1'));
    await become(found, { east: 'https://east:1' });
    await put('east', config('https://east:2'));
    await become(found, { east: 'https://east:2' });
    await rm(join(directory, 'east'));
    await become(found, {});
    ending.abort();
    await running;
  });

  test('and looked at every ten seconds, where nothing tells of changes', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'clustermesh-'));
    try {
      await writeFile(join(elsewhere, 'file'), config('https://east:1'));
      await symlink(join(elsewhere, 'file'), join(directory, 'east'));
      const clock = new FakeClock();
      const found = follow({ clock });
      const running = found.follow();
      await become(found, { east: 'https://east:1' });
      await writeFile(join(elsewhere, 'file'), config('https://east:2'));
      const seen = become(found, { east: 'https://east:2' });
      let isSeen = false;
      void seen.then(() => (isSeen = true));
      while (!isSeen) await clock.advance(10_000);
      ending.abort();
      await running;
    } finally {
      await rm(elsewhere, { recursive: true });
    }
  });
});
