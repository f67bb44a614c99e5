import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { baseFor } from './base-images.ts';
import { basesOf, copiedFiles, withoutDigests } from './dockerfiles.ts';

const DOCKERFILE = `
ARG NODE=24.1.2-bookworm-slim
FROM envoyproxy/envoy:distroless-v1.2.3 AS envoy
FROM node:\${NODE} AS build
COPY one.txt directory/ ./
FROM node:\${NODE}
COPY --from=build /src/dist dist
FROM scratch
FROM build
`;

describe('a Dockerfile', () => {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fairlead-dockerfile-'));
    await mkdir(join(directory, 'directory/deep'), { recursive: true });
    for (const name of ['one.txt', 'two.txt', 'directory/b', 'directory/deep/a'])
      await writeFile(join(directory, name), '');
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  test('begins with images, which are not its own stages', () => {
    expect(basesOf(DOCKERFILE)).toEqual(['envoyproxy/envoy:distroless-v1.2.3', 'node:24.1.2-bookworm-slim']);
  });

  test('names its images without digests where they are made here', () => {
    const digest = `@sha256:${'0123456789abcdef'.repeat(4)}`;
    expect(withoutDigests(DOCKERFILE.replace(/v1\.2\.3/, `$&${digest}`))).toBe(DOCKERFILE);
  });

  test('copies files and directories of its context, and nothing else', async () => {
    const files = await copiedFiles(DOCKERFILE, directory);
    expect(files.map(([name]) => name)).toEqual(['one.txt', 'directory/b', 'directory/deep/a']);
    for (const [name, path] of files) expect(path).toBe(join(directory, name));
  });

  test('that begins with an image that cannot be made here is refused', () => {
    expect(() => baseFor('alpine:3')).toThrow('alpine:3: this base image cannot be made here');
  });
});
