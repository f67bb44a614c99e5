import { mkdir, rename, rm, symlink, truncate, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Following } from './testing/following.ts';
import { temporaryDirectory } from './testing/temporary-directory.ts';
import { virtualService } from './testing/yaml.ts';
import { watchDirectory } from './watch.ts';

async function directory(
  files: Record<string, string>,
): Promise<{ path: string; put: (name: string, text: string) => Promise<void> }> {
  const path = await temporaryDirectory();
  const put = (name: string, text: string): Promise<void> => writeFile(join(path, name), text);
  for (const [name, text] of Object.entries(files)) await put(name, text);
  return { path, put };
}

describe('a directory that is followed', () => {
  test('delivers every kind at first, and then what changes', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1'), 'b.yml': virtualService('b', 'b1') });
    const following = await Following.start(path);
    expect(following.routes).toEqual({ a: 'a1#1', b: 'b1#1' });
    await put('a.yaml', virtualService('a', 'a2'));
    await following.until(() => following.calls.length > 0);
    expect(following.calls).toEqual(['upsert VirtualService/shop/a#2']);
    expect(following.routes).toEqual({ a: 'a2#2', b: 'b1#1' });
  });

  test('gives an object an identity until it is deleted, and counts its contents', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1') });
    const following = await Following.start(path);
    const uid = (): unknown => following.objects.get('VirtualService/shop/a')?.metadata.uid;
    const first = uid();
    await put('a.yaml', `# moved\n${virtualService('a', 'a1')}---\n${virtualService('b', 'b1')}`);
    await following.until(() => 'b' in following.routes);
    expect(following.routes['a']).toBe('a1#1');
    await put('a.yaml', virtualService('a', 'a2'));
    await following.until(() => following.routes['a'] === 'a2#2' && !('b' in following.routes));
    expect(uid()).toBe(first);
    await unlink(join(path, 'a.yaml'));
    await following.until(() => !('a' in following.routes));
    await put('a.yaml', virtualService('a', 'a2'));
    await following.until(() => 'a' in following.routes);
    expect(following.routes['a']).toBe('a2#1');
    expect(uid()).not.toBe(first);
  });

  test('compares what is wrong only when something else is', async () => {
    const { path, put } = await directory({ 'a.yaml': 'no object\n' });
    const following = await Following.start(path);
    // A file that has just changed is read twice.
    await put('b.yaml', virtualService('b', 'b1'));
    await following.until(() => 'b' in following.routes);
    const [report] = following.source.reports();
    const print = vi.spyOn(JSON, 'stringify');
    onTestFinished(() => print.mockRestore());
    await put('c.yaml', virtualService('c', 'c1'));
    await following.until(() => 'c' in following.routes);
    expect(print.mock.calls.filter(([value]) => value === report)).toEqual([]);
  });

  test('takes several changes of one moment together', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1'), 'b.yaml': virtualService('b', 'b1') });
    const following = await Following.start(path);
    await Promise.all([
      put('a.yaml', virtualService('a', 'a2')),
      put('b.yaml', virtualService('b', 'b2')),
      put('c.json', JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })),
    ]);
    await following.until(() => following.calls.length > 0);
    await following.until(() => following.calls.length === 3);
    expect(following.calls.sort()).toEqual([
      'upsert Namespace/undefined/shop#1',
      'upsert VirtualService/shop/a#2',
      'upsert VirtualService/shop/b#2',
    ]);
  });

  test('keeps the last good version of what breaks, says where, and takes the mended one', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1'), 'b.yaml': virtualService('b', 'b1') });
    const following = await Following.start(path);
    await put('a.yaml', 'kind: VirtualService\n  name: x: y\n');
    await following.until(() => following.reports.length > 0);
    expect(following.reports[0]).toMatch(/a\.yaml:\d: is not valid YAML: /);
    await put('b.yaml', virtualService('b', 'b2'));
    await following.until(() => following.routes['b'] === 'b2#2');
    expect(following.routes).toEqual({ a: 'a1#1', b: 'b2#2' });
    await put('a.yaml', virtualService('a', 'a2'));
    await following.until(() => following.routes['a'] === 'a2#2' && following.reports.length === 0);
  });

  test('a file that becomes empty or cannot be read loses nothing', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1'), 'b.yaml': virtualService('b', 'b1') });
    const following = await Following.start(path);
    await truncate(join(path, 'a.yaml'));
    await writeFile(join(path, 'b.yaml'), Buffer.from([0x61, 0xff, 0xfe]));
    await following.until(() => following.reports.length === 2);
    expect(following.reports).toEqual([
      `${path}/a.yaml: is empty; its objects stay in force until it has content again or is deleted`,
      `${path}/b.yaml: is not UTF-8; save it as UTF-8`,
    ]);
    await put('c.yaml', virtualService('c', 'c1'));
    await following.until(() => 'c' in following.routes);
    expect(following.routes).toEqual({ a: 'a1#1', b: 'b1#1', c: 'c1#1' });
  });

  test('a file that is replaced by a rename is one change, and editors leave nothing behind', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1') });
    const following = await Following.start(path);
    await put('.a.yaml.swp', virtualService('a', 'hidden'));
    await put('a.yaml~', virtualService('a', 'backup'));
    await rename(join(path, 'a.yaml'), join(path, 'a.yaml.bak'));
    await put('a.yaml.tmp', virtualService('a', 'a2'));
    await rename(join(path, 'a.yaml.tmp'), join(path, 'a.yaml'));
    await following.until(() => following.calls.length > 0);
    expect(following.calls).toEqual(['upsert VirtualService/shop/a#2']);
    expect(following.routes).toEqual({ a: 'a2#2' });
  });

  test('an object that moves to another file stays the same object', async () => {
    const { path } = await directory({ 'b.yaml': virtualService('a', 'a1') });
    const following = await Following.start(path);
    await rename(join(path, 'b.yaml'), join(path, 'a.yaml'));
    await writeFile(join(path, 'c.yaml'), virtualService('c', 'c1'));
    await following.until(
      () =>
        'c' in following.routes &&
        following.source.locate(
          { group: 'networking.istio.io', kind: 'VirtualService', namespace: 'shop', name: 'a' },
          '',
        )?.file === `${path}/a.yaml`,
    );
    expect(following.calls).toEqual(['upsert VirtualService/shop/c#1']);
    expect(following.appeared).toEqual([]);
  });

  test('directories come and go with what is in them', async () => {
    const { path } = await directory({});
    const following = await Following.start(path);
    await mkdir(join(path, 'deep/deeper'), { recursive: true });
    await writeFile(join(path, 'deep/deeper/a.yaml'), virtualService('a', 'a1'));
    await following.until(() => 'a' in following.routes);
    await writeFile(join(path, 'deep/deeper/a.yaml'), virtualService('a', 'a2'));
    await following.until(() => following.routes['a'] === 'a2#2');
    await rm(join(path, 'deep'), { recursive: true });
    await following.until(() => !('a' in following.routes));
  });

  test('when the directory itself is gone its objects stay, until it is back', async () => {
    const { path } = await directory({});
    const root = join(path, 'root');
    await mkdir(root);
    await writeFile(join(root, 'a.yaml'), virtualService('a', 'a1'));
    const following = await Following.start(root);
    await rm(root, { recursive: true });
    await following.until(() => following.reports.length > 0);
    expect(following.reports).toEqual([
      `${root}: cannot be read: no such file or directory; its objects stay in force`,
    ]);
    await mkdir(root);
    await writeFile(join(root, 'b.yaml'), virtualService('b', 'b1'));
    await following.until(() => 'b' in following.routes && !('a' in following.routes));
    expect(following.reports).toEqual([]);
  });

  test('a mounted ConfigMap changes by a link that is swapped, without a moment in between', async () => {
    const { path } = await directory({});
    const version = async (name: string, to: string): Promise<void> => {
      await mkdir(join(path, name));
      await writeFile(join(path, name, 'a.yaml'), virtualService('a', to));
      await symlink(name, join(path, '..data_tmp'));
      await rename(join(path, '..data_tmp'), join(path, '..data'));
    };
    await version('..2026_01', 'a1');
    await symlink('..data/a.yaml', join(path, 'a.yaml'));
    const following = await Following.start(path);
    expect(following.routes).toEqual({ a: 'a1#1' });
    await version('..2026_02', 'a2');
    await rm(join(path, '..2026_01'), { recursive: true });
    await following.until(() => following.calls.length > 0);
    expect(following.calls).toEqual(['upsert VirtualService/shop/a#2']);
    expect(following.routes).toEqual({ a: 'a2#2' });
  });

  test('a link to a file elsewhere is followed, and circles of links end', async () => {
    const { path: elsewhere, put } = await directory({ 'a.yaml': virtualService('a', 'a1') });
    const { path } = await directory({});
    await symlink(join(elsewhere, 'a.yaml'), join(path, 'a.yaml'));
    await symlink(path, join(path, 'circle'));
    await symlink('nowhere', join(path, 'dangling.yaml'));
    const following = await Following.start(path);
    await put('a.yaml', virtualService('a', 'a2'));
    await following.until(() => following.routes['a'] === 'a2#2');
    expect(following.reports).toEqual([]);
  });

  test('a file that cannot be read any more keeps what it had', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1') });
    const following = await Following.start(path);
    await symlink('a.yaml', join(path, 'circle'));
    await rename(join(path, 'circle'), join(path, 'a.yaml'));
    await following.until(() => following.reports.length > 0);
    expect(following.reports).toEqual([`${path}/a.yaml: cannot be read: ELOOP; its objects stay in force`]);
    await put('b.yaml', virtualService('b', 'b1'));
    await following.until(() => 'b' in following.routes);
    expect(following.routes).toEqual({ a: 'a1#1', b: 'b1#1' });
  });

  test('of one object in two files the first is used; when that goes, the other', async () => {
    const { path } = await directory({ 'a.yaml': virtualService('x', 'a'), 'b.yaml': virtualService('x', 'b') });
    const following = await Following.start(path);
    expect(following.routes).toEqual({ x: 'a#1' });
    expect(following.reports).toEqual([
      `${path}/b.yaml:1: VirtualService/shop/x: is already defined in ${path}/a.yaml:1, which is used; remove one of them`,
    ]);
    await unlink(join(path, 'a.yaml'));
    await following.until(() => following.routes['x'] === 'b#2');
    expect(following.reports).toEqual([]);
  });

  test('a file with a time in the future is read like any other', async () => {
    const { path, put } = await directory({ 'a.yaml': virtualService('a', 'a1') });
    const following = await Following.start(path);
    await put('a.yaml', virtualService('a', 'a2'));
    const future = new Date('2999-01-01');
    await utimes(join(path, 'a.yaml'), future, future);
    await following.until(() => following.routes['a'] === 'a2#2');
  });

  test('finds the line of a field, or of what is nearest to it', async () => {
    const labelled = virtualService('b', 'b1').replace(
      '  name: b\n',
      '  name: b\n  labels:\n    app.kubernetes.io/name: b\n',
    );
    const { path } = await directory({ 'a.yaml': `${virtualService('a', 'a1')}---\n${labelled}` });
    const { source } = await Following.start(path);
    const b = { group: 'networking.istio.io', kind: 'VirtualService', namespace: 'shop', name: 'b' };
    const at = (field: string): unknown => source.locate(b, field);
    expect(at('')).toEqual({ file: `${path}/a.yaml`, line: 14 });
    expect(at('spec.http[0].route[0].destination.host')).toMatchObject({ line: 27 });
    expect(at('spec.http[0].route[0].destination.subset')).toMatchObject({ line: 26 });
    expect(at('spec.http[7].route')).toMatchObject({ line: 24 });
    expect(at('metadata.labels.app.kubernetes.io/name')).toMatchObject({ line: 19 });
    expect(at('metadata.labels[app.kubernetes.io/name]')).toMatchObject({ line: 19 });
    expect(at('no[such].field')).toMatchObject({ line: 14 });
    expect(source.locate({ ...b, name: 'c' }, 'spec')).toBeUndefined();
  });
});

test('a path that does not exist at the start is refused by name', async () => {
  const { path } = await directory({});
  const options = {
    validate: () => [],
    sink: { replace: () => {}, upsert: () => {}, delete: () => {} },
    onReports: () => {},
    signal: new AbortController().signal,
  };
  await expect(watchDirectory({ ...options, paths: [join(path, 'no')] })).rejects.toMatchObject({
    code: 'DIRECTORY',
    message: `${path}/no: no such file or directory`,
  });
});
