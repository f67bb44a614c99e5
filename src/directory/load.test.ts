import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadDirectory } from './load.ts';
import { printReport } from './testing/print-report.ts';
import { temporaryDirectory } from './testing/temporary-directory.ts';
import { validate, virtualService } from './testing/yaml.ts';

test('files and directories are read once, in the order of paths and names', async () => {
  const path = await temporaryDirectory();
  await mkdir(join(path, 'mesh'));
  await writeFile(join(path, 'mesh/b.yaml'), virtualService('b', 'b1'));
  await writeFile(
    join(path, 'mesh/a.yaml'),
    `${virtualService('a', 'a1')}---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: s}\n`,
  );
  await writeFile(join(path, 'mesh/notes.txt'), 'not: [read');
  await writeFile(join(path, 'single'), `${virtualService('c', 'c1')}---\nkind: {`);
  const loaded = await loadDirectory([join(path, 'single'), join(path, 'mesh')], validate);
  expect(
    loaded.objects
      .get('VirtualService')
      ?.map(({ metadata }) => `${metadata.name} ${metadata.uid}#${metadata.generation}`),
  ).toEqual(['c VirtualService:shop:c#1', 'a VirtualService:shop:a#1', 'b VirtualService:shop:b#1']);
  expect(loaded.objects.get('Service')).toEqual([]);
  expect(loaded.ignored).toBe(1);
  expect(loaded.reports.map(printReport)).toEqual([expect.stringMatching(`^${path}/single:14: is not valid YAML: `)]);
  expect(
    loaded.locate(
      { group: 'networking.istio.io', kind: 'VirtualService', namespace: 'shop', name: 'a' },
      'spec.hosts[0]',
    ),
  ).toEqual({
    file: `${path}/mesh/a.yaml`,
    line: 8,
  });
});

test('a path that is neither a file nor a directory is refused, as if it were not there', async () => {
  await expect(loadDirectory(['/dev/null'], validate)).rejects.toMatchObject({
    code: 'DIRECTORY',
    message: '/dev/null: is neither a file nor a directory',
  });
});

test('a path that does not exist is refused by name', async () => {
  await expect(loadDirectory(['/no/such'], validate)).rejects.toMatchObject({
    code: 'DIRECTORY',
    message: '/no/such: no such file or directory',
  });
});
