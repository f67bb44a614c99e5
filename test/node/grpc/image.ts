import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { build } from 'esbuild';
import { IMAGES } from '../buildah.ts';
import type { Image } from '../images.ts';

export const GRPC_IMAGE = 'docker.io/library/grpc-echo:test';

/** How containers of it start: arguments follow. */
export const ECHO = ['node', '/echo.cjs'];

const require = createRequire(import.meta.url);

/** Of a program that uses gRPC's own xDS, whose library reads files of its packages when it starts. */
export async function grpcImage(): Promise<Image> {
  const program = join(IMAGES, 'grpc/echo.cjs');
  await build({
    entryPoints: [join(import.meta.dirname, 'echo.ts')],
    outfile: program,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node24',
    logLevel: 'warning',
    // A bundle is larger than esbuild expects.
    logOverride: { 'large-output': 'silent' },
  });
  const library = require.resolve('@grpc/grpc-js-xds/package.json');
  const protos = globSync('deps/**/*.proto', { cwd: dirname(library) }).sort();
  return {
    name: GRPC_IMAGE,
    dockerfile: [
      'FROM node:24.21.0-bookworm-slim',
      // The bundle looks for them some directories above its own: there are none.
      'COPY deps /deps',
      'COPY echo.cjs re2.wasm /',
      'USER 1000:1000',
      `CMD ${JSON.stringify(ECHO)}`,
    ].join('\n'),
    context: {
      ...Object.fromEntries(protos.map((path) => [path, join(dirname(library), path)])),
      'echo.cjs': program,
      're2.wasm': createRequire(library).resolve('re2-wasm/build/wasm/re2.wasm'),
    },
  };
}
