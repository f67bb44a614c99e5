import { expect, test } from 'vitest';
import { pathOf } from '../../peers/peer.ts';
import { type Image, programImage } from '../images.ts';
import type { RunningNode } from '../node.ts';

/** Of the Pods. */
export function webImage(): Image {
  return programImage(IMAGE, pathOf('busybox'));
}

export function plainPods(started: () => RunningNode): void {
  test('runs a Deployment, whose Pods are reached through their Service, by name', async () => {
    await started().apply(OBJECTS);
    await started().kubectl('wait', '--for=condition=Available', 'deployment/web', '--timeout=60s');
    const port = await started().forward('web.default.svc.cluster.local', 80);
    const names = new Set<string>();
    await expect
      .poll(async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
        return names.add((await answer.text()).trim()).size;
      })
      .toBe(2);
    for (const name of names) expect(name).toMatch(/^web-/);
  });

  test('resolves names in Pods, which reach each other and the API server', async () => {
    const inside = (...command: string[]) => started().kubectl('exec', 'deployment/web', '--', '/busybox', ...command);
    expect(await inside('wget', '-q', '-O-', 'http://web')).toMatch(/^web-/);
    // Exits with an error if nobody listens.
    await inside('sh', '-c', '/busybox nc -w 5 kubernetes.default 443 </dev/null');
    await expect(inside('sh', '-c', '/busybox nc -w 5 web 81 </dev/null')).rejects.toThrow('exit code');
  });

  test('hands on logs, and runs programs in its network', async () => {
    expect(await started().kubectl('logs', 'deployment/web')).toContain('started');
    expect(await started().run('hostname', [])).toBe('node\n');
  });
}

const IMAGE = 'docker.io/library/web:test';
const labels = { app: 'web' };
const SCRIPT = 'mkdir /www; hostname >/www/index.html; echo started; exec /busybox httpd -f -p 8080 -h /www';
const OBJECTS = [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [
            {
              name: 'web',
              image: IMAGE,
              imagePullPolicy: 'Never',
              command: ['/busybox', 'sh', '-c', SCRIPT.replaceAll(/\b(mkdir|hostname) /g, '/busybox $1 ')],
              ports: [{ name: 'http', containerPort: 8080 }],
              readinessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 1 },
            },
          ],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: labels, ports: [{ port: 80, targetPort: 'http' }] },
  },
]
  .map((object) => JSON.stringify(object))
  .join('\n---\n');
