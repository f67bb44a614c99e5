import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../chart/chart.ts';

interface Step {
  readonly name?: string;
  readonly id?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

interface Job {
  readonly uses?: string;
  readonly needs?: string | readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly outputs?: Readonly<Record<string, string>>;
  readonly steps?: readonly Step[];
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

const DIRECTORY = join(ROOT, '.github/workflows');
const files = globSync('*.yml', { cwd: DIRECTORY });
const textOf = (file: string): string => readFileSync(join(DIRECTORY, file), 'utf8');
const workflow = (file: string): Workflow => parse(textOf(file)) as Workflow;
const stepsOf = (job: Job | undefined): readonly Step[] => job?.steps ?? [];
const ran = (steps: readonly Step[]): string => steps.map(({ run }) => run ?? '').join('\n');
const using = (steps: readonly Step[], action: string): Step[] =>
  steps.filter(({ uses }) => uses?.startsWith(`${action}@`));

describe.each(files)('the workflow %s', (file) => {
  test('names each action by its commit, and by the version that Renovate keeps beside it', () => {
    const actions = [...textOf(file).matchAll(/\buses: (.*)$/gm)].map(([, action = '']) => action);
    expect(actions).not.toEqual([]);
    for (const action of actions)
      if (!action.startsWith('./')) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('may only read unless a job needs more', () => {
    expect(workflow(file).permissions).toEqual({ contents: 'read' });
    if (file === 'release.yml') return;
    for (const job of Object.values(workflow(file).jobs)) expect(job).not.toHaveProperty('permissions');
  });

  test('runs no text that somebody else writes as part of a script', () => {
    expect(workflow(file).on).not.toHaveProperty('pull_request_target');
    for (const job of Object.values(workflow(file).jobs))
      expect(ran(stepsOf(job))).not.toMatch(/\$\{\{[^}]*github\.(event|head_ref|ref_name)/);
  });
});

describe('CI', () => {
  const { on, jobs } = workflow('ci.yml');
  const steps = Object.values(jobs).flatMap(stepsOf);

  test('runs on each change, and before a release, everything that make has to check, with nothing skipped', () => {
    expect(Object.keys(on)).toEqual(expect.arrayContaining(['push', 'pull_request', 'workflow_call']));
    for (const target of ['check', 'test', 'test-node', 'test-long'])
      expect(ran(steps)).toMatch(new RegExp(`make ${target}( |$)`, 'm'));
    const tests = steps.find(({ run }) => run?.includes('make test'));
    expect(tests?.env).toMatchObject({ FAIRLEAD_REQUIRE_PEERS: '1' });
  });

  test('compares the recorded Node with the official release', () => {
    expect(steps).toContainEqual({ run: 'tools/node-release.sh' });
  });
});

describe('a release', () => {
  const { on, jobs } = workflow('release.yml');
  const { push, sign, release } = jobs;

  test('is of a tag, and nothing of it begins before CI has passed', () => {
    expect(on).toEqual({ push: { tags: ['v*'] } });
    expect(jobs['ci']?.uses).toBe('./.github/workflows/ci.yml');
    const awaits = (name: string): boolean =>
      name === 'ci' || [jobs[name]?.needs ?? []].flat().some((needed) => awaits(needed));
    for (const name of Object.keys(jobs)) expect(awaits(name), name).toBe(true);
    expect(release?.needs).toContain('sign');
  });

  test('gives each job only what it needs, and the identity only to the one that signs', () => {
    expect(Object.fromEntries(Object.entries(jobs).map(([name, { permissions }]) => [name, permissions]))).toEqual({
      ci: undefined,
      push: { contents: 'read', packages: 'write' },
      sign: { packages: 'write', 'id-token': 'write' },
      release: { contents: 'write', packages: 'read' },
    });
    // It runs no code of the repository, and of others only cosign.
    expect(stepsOf(sign).flatMap(({ uses }) => uses?.split('@')[0] ?? [])).toEqual(['sigstore/cosign-installer']);
  });

  const pushed = using(stepsOf(push), 'docker/build-push-action');

  test('pushes the image of each Dockerfile, with provenance and an SBOM', () => {
    expect(pushed.map((step) => step.with?.['file'] ?? 'Dockerfile').sort()).toEqual(
      globSync('Dockerfile*', { cwd: ROOT }).sort(),
    );
    for (const step of pushed) expect(step.with).toMatchObject({ push: true, provenance: true, sbom: true });
  });

  test('signs each image and chart that is pushed, by its digest', () => {
    expect(ran(stepsOf(sign))).toMatch(/cosign sign --yes <<< "\$PUSHED"$/m);
    const signed = stepsOf(sign).flatMap(({ env }) => env?.['PUSHED']?.split('\n') ?? []);
    const images = pushed.map(({ id }) => outputWith(`\${{ steps.${id}.outputs.digest }}`));
    const charts = outputWith('${{ steps.charts.outputs.charts }}');
    expect(signed.map((line) => /needs\.push\.outputs\.(\w+) \}\}$/.exec(line)?.[1])).toEqual([...images, charts]);
    const names = pushed.map((step) => String(step.with?.['tags']).replace(/:[^:]*$/, ''));
    expect(signed.slice(0, -1).map((line) => line.replace(/@.*/, ''))).toEqual(names);
    const loop = ran(stepsOf(push).filter(({ id }) => id === 'charts'));
    for (const chart of globSync('*/Chart.yaml', { cwd: join(ROOT, 'charts') }))
      expect(loop).toContain(chart.split('/')[0]);
  });

  test('has an SBOM of each image, by its digest, and one of the packages in the bundle', () => {
    const scanned = using(stepsOf(release), 'anchore/sbom-action').map((step) => String(step.with?.['image']));
    for (const { id } of pushed) {
      const output = outputWith(`\${{ steps.${id}.outputs.digest }}`);
      expect(scanned.filter((image) => image.endsWith(`@\${{ needs.push.outputs.${output} }}`))).toHaveLength(1);
    }
    expect(ran(stepsOf(release))).toContain('npm sbom --package-lock-only');
  });

  function outputWith(value: string): string | undefined {
    return Object.entries(push?.outputs ?? {}).find(([, output]) => output === value)?.[0];
  }
});

describe('advisories', () => {
  test('are looked up for all of package-lock.json every day, and when it changes', () => {
    const { on, jobs } = workflow('advisories.yml');
    expect(on['schedule']).toEqual([{ cron: expect.stringMatching(/^\d+ \d+ \* \* \*$/) as string }]);
    expect(on['push']).toMatchObject({ paths: ['package-lock.json'] });
    const commands = ran(Object.values(jobs).flatMap(stepsOf));
    expect(commands).toMatch(/^npm audit --package-lock-only --audit-level=moderate$/m);
    expect(commands).toContain('npm audit signatures');
  });

  test('reach pull requests, as do new versions, by Renovate, which keeps digests and commits', () => {
    const renovate = JSON.parse(readFileSync(join(ROOT, '.github/renovate.json'), 'utf8')) as {
      readonly packageRules: readonly unknown[];
    };
    expect(renovate).toMatchObject({
      extends: expect.arrayContaining(['docker:pinDigests', 'helpers:pinGitHubActionDigests']) as string[],
      osvVulnerabilityAlerts: true,
    });
    // A new Node comes as its image and its packages in one pull request: they are compared.
    expect(renovate.packageRules).toContainEqual({ matchPackageNames: ['/^node-linux-/', 'node'], groupName: 'Node' });
  });
});
