import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadDirectory, loadTexts } from './load.ts';
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

describe('what a kustomization reads, and not as an object', () => {
  const part = 'apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: shop}\n';
  const loaded = (files: Readonly<Record<string, string>>) =>
    loadTexts(
      Object.entries(files).map(([path, text]) => ({ path, text })),
      validate,
    );
  const said = (files: Readonly<Record<string, string>>) =>
    loaded(files).reports.map((report) => `${report.severity} ${printReport(report)}`);
  const ignored = (file: string) =>
    `warning ${file}:1: is a part of a kustomization, not an object, and is ignored; check what kustomize builds`;

  test.each([
    ['patches: [{path: part.yaml}]', 'kustomization.yaml'],
    ['patches: [{patch: "- op: remove"}, {target: {kind: VirtualService}, path: ./part.yaml}]', 'kustomization.yml'],
    ['patchesStrategicMerge: [part.yaml, "kind: VirtualService"]', 'Kustomization'],
    ['patchesJson6902: [{path: ../base/../over/part.yaml}]', 'kustomization.yaml'],
    ['replacements: [{path: part.yaml}, {source: {kind: Service}}]', 'kustomization.yaml'],
    ['configurations: [part.yaml]', 'kustomization.yaml'],
    ['configMapGenerator: [{name: a, literals: [a=b]}, {name: b, files: [a.txt, b=part.yaml]}]', 'kustomization.yaml'],
    ['secretGenerator: [{name: a, files: [part.yaml]}]', 'kustomization.yaml'],
  ])('%s', (listed, name) => {
    const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n${listed}\n`;
    for (const root of ['', './', '/tmp/', '../'])
      expect(said({ [`${root}over/${name}`]: kustomization, [`${root}over/part.yaml`]: part })).toEqual([
        ignored(`${root}over/part.yaml`),
      ]);
    expect(said({ [`other/deep/${name}`]: kustomization, 'over/part.yaml': part })).toEqual([
      'error over/part.yaml:1: VirtualService/shop/a: spec: is missing',
    ]);
  });

  test('is read from directories, whatever its name', async () => {
    const path = await temporaryDirectory();
    await writeFile(join(path, 'Kustomization'), 'kind: Kustomization\npatches: [{path: part.yaml}]\n');
    await writeFile(join(path, 'part.yaml'), part);
    const { reports } = await loadDirectory([path], validate);
    expect(reports.map(printReport)).toContain(ignored(`${path}/part.yaml`).replace('warning ', ''));
  });

  test('takes nothing from what it patches, and is not a workload', () => {
    const deployment = (image: string) =>
      `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{image: ${image}}]}}}\n`;
    const { objects, others, reports } = loaded({
      'a/kustomization.yaml': 'patches: [{path: v.yaml}, {path: d.yaml}]\n',
      'a/v.yaml': virtualService('a', 'patched'),
      'a/d.yaml': deployment('patched'),
      'b/v.yaml': virtualService('a', 'base'),
      'b/d.yaml': deployment('base'),
    });
    expect(JSON.stringify([objects.get('VirtualService'), others])).not.toContain('patched');
    expect([objects.get('VirtualService')?.length, others.length]).toEqual([1, 1]);
    expect(reports.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  test('is an object where one takes it for a resource', () => {
    const files = { 'b/kustomization.yaml': 'resources: [part.yaml]\n', 'b/part.yaml': part };
    const generates = 'kind: Kustomization\nconfigMapGenerator: [{name: a, files: [../b/part.yaml]}]\n';
    expect(said({ 'a/kustomization.yaml': generates, ...files })).toContain(
      'error b/part.yaml:1: VirtualService/shop/a: spec: is missing',
    );
  });

  test('is told where it is not YAML; odd kustomizations name nothing', () => {
    expect(said({ 'kustomization.yaml': 'patches: [{path: p.yaml}]\n', 'p.yaml': 'spec: [\n' })).toEqual([
      expect.stringMatching(/^warning kustomization.yaml:1: /),
      expect.stringMatching(/^error p.yaml:1: is not valid YAML/),
    ]);
    for (const odd of [
      'patches: p.yaml',
      'patches: [7, null, [], {path: 7}, {path: ""}]',
      'resources: [p.yaml]',
      'secretGenerator: [7, {files: 7}, {files: [7]}]',
      '[]',
      'patches: [',
    ])
      expect(said({ 'kustomization.yaml': odd, 'p.yaml': part })).toContain(
        'error p.yaml:1: VirtualService/shop/a: spec: is missing',
      );
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
