import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { printLogOnFailure } from '../peers/with-peers.ts';
import { grpcImage } from './grpc/image.ts';
import { buildImages } from './images.ts';
import type { RunningNode } from './node.ts';
import { startOnlyNode } from './only-node.ts';
import { buildProjectImages, shopImage } from './project-images.ts';
import { chart } from './scenarios/chart.ts';
import { guide } from './scenarios/guide.ts';
import { plainPods, webImage } from './scenarios/plain-pods.ts';
import { proxyImage } from './scenarios/proxy-image.ts';
import { mesh } from './scenarios/mesh.ts';
import { withNode } from './with-node.ts';

/** One node for all of them: it takes longer to start than most of what is tested on it. */
withNode('a node', () => {
  let node: RunningNode | undefined;
  const started = (): RunningNode => node ?? expect.fail('it did not start');
  const fixedPaths = readdirSync('/var/lib');
  printLogOnFailure(() => node);

  beforeAll(async () => {
    const images = [
      ...(await buildProjectImages(['fairlead', 'fairlead-proxy'])),
      ...(await buildImages([shopImage(), webImage(), await grpcImage()])),
    ];
    node = await startOnlyNode({ images });
  }, 900_000);
  afterAll(async () => {
    await node?.stop();
  });

  describe('the chart', () => chart(started));
  describe('Pods', () => plainPods(started));
  describe('the image of the proxy', () => proxyImage(started));
  describe('the guide', () => guide(started));
  describe('a mesh', () => mesh(started));

  test('leaves nothing behind', async () => {
    const { directory } = started();
    const before = readFileSync('/proc/self/mounts', 'utf8');
    await started().stop();
    node = undefined;
    expect(existsSync(directory)).toBe(false);
    expect(readFileSync('/proc/self/mounts', 'utf8')).toBe(before);
    expect(before).not.toContain(directory);
    expect(readdirSync('/sys/fs/cgroup', { recursive: true }).filter((name) => name.includes('fairlead-node'))).toEqual(
      [],
    );
    expect(readdirSync('/var/lib')).toEqual(fixedPaths);
  });
});
