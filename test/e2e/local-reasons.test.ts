import { copyFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { Amend } from '../../src/envoy/encode/encoder.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { any } from '../../src/envoy/encode/proto.ts';
import { conditions } from '../features/conditions.ts';
import { serviceEntry } from '../features/objects.ts';
import { type LogLine, Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { later } from '../features/skipping-clock.ts';
import { Cluster } from '../features/sources.ts';
import { createAuthority } from '../peers/keys.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { withPeers } from '../peers/with-peers.ts';
import { FLEET, Fleet, NAMES } from './fleet.ts';
import { ask, type Backend, startBackend } from './traffic.ts';

/** A file that clusters of this host need, where each Envoy runs. */
const FILE = 'ca.pem';
const NEEDS_FILE = 'needs-file.example.com';

withPeers(FLEET, 'what an Envoy refuses for a reason of its own', () => {
  let cluster: Cluster;
  let backend: Backend;
  beforeEach(async () => {
    cluster = await Cluster.create();
    backend = await startBackend('backend');
    return () => backend.close();
  });

  const entryFor = (host: string, port: number): KubernetesObject =>
    serviceEntry(host.split('.')[0]!, {
      hosts: [host],
      resolution: 'STATIC',
      ports: [{ number: port, name: 'tcp', protocol: 'TCP' }],
      endpoints: [{ address: '127.0.0.1', ports: { tcp: backend.port } }],
    });

  /** Nothing is refused yet. @param refused is told of what an Envoy refuses, before anybody else is. */
  async function start(refused: (name: string, build: string) => void, cwd?: (name: string) => string) {
    const onLine = ({ msg, nodeId, build }: LogLine): void => {
      if (msg === 'Proxy rejected resources') refused(String(nodeId).split(/[~.]/)[5]!, String(build));
    };
    const { ca, settings } = await securePort();
    const program = await Program.start({ kubeconfig: cluster.kubeconfig, ...settings }, { amend: withFile, onLine });
    await program.logged('Ready');
    await program.logged('Signing certificates');
    const fleet = await Fleet.start({ adsPorts: [program.serving.ports.secure!], ca, ...(cwd && { cwd }) });
    onTestFinished(() => fleet.stop());
    return { program, fleet };
  }

  const programmed = (object: KubernetesObject) => conditions(cluster, object)['Programmed'];

  const rejectedBy = (names: readonly string[]) => ({
    status: 'False',
    reason: 'Rejected',
    message: expect.stringMatching(new RegExp(`^Rejected by ${names.length} prox(y|ies) \\(`)) as string,
  });

  async function isNamed(object: KubernetesObject, names: readonly string[]): Promise<void> {
    await cluster.changed(() => expect(programmed(object)).toMatchObject(rejectedBy(names)));
    for (const name of names) expect(programmed(object)!.message).toContain(`${name}.shop`);
    expect(programmed(object)!.message).not.toContain('in force');
  }

  test('a port in use: the others have the listener, and so has this one when the port is free', async () => {
    const [port = 0, free = 0] = await freePorts(2);
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(port, '127.0.0.1', resolve));
    const refusers = new Set<string>();
    const { program, fleet } = await start((name) => {
      refusers.add(name);
      holder.close();
    });
    const [object, other] = [entryFor('busy.example.com', port), entryFor('free.example.com', free)];
    await cluster.apply(object, other);
    await expect.poll(async () => (await listening(fleet, port)) + refusers.size).toBe(NAMES.length);
    expect(refusers.size).toBeGreaterThan(0);
    await isNamed(object, [...refusers]);
    // Each build has tried it, at most once in vain.
    expect(
      [...refusers]
        .map((name) => name[0])
        .sort()
        .join(''),
    ).toMatch(/^(a|b|ab)$/);
    expect(programmed(object)!.message).toContain('Address already in use');
    expect(await ask(port, 'busy')).toBe('200 backend');
    expect(await ask(free, 'free')).toBe('200 backend');
    expect(programmed(other)).not.toMatchObject({ reason: 'Rejected' });
    await later(program, () => programmed(object)).toMatchObject({ status: 'True', reason: 'Programmed' });
    expect(await listening(fleet, port)).toBe(NAMES.length);
  });

  describe('a missing file', () => {
    let directory = '';
    const cwd = (name: string): string => join(directory, name);
    const give = (name: string): void => copyFileSync(join(directory, FILE), join(cwd(name), FILE));
    beforeEach(async () => {
      directory = await temporaryDirectory();
      await writeFile(join(directory, FILE), (await createAuthority()).certificate);
      for (const name of NAMES) await mkdir(cwd(name));
    });

    test('where only the first of each build lacks it, the others have the cluster', async () => {
      const [port = 0] = await freePorts(1);
      const refusers: string[] = [];
      const { program, fleet } = await start((name) => {
        refusers.push(name);
        for (const other of NAMES) if (other[0] === name[0] && other !== name) give(other);
      }, cwd);
      const object = entryFor(NEEDS_FILE, port);
      await cluster.apply(object);
      await expect.poll(() => having(fleet, NEEDS_FILE)).toHaveLength(3);
      await isNamed(object, refusers);
      expect(refusers.map((name) => name[0]).sort()).toEqual(['a', 'b']);
      for (const name of refusers) give(name);
      await later(program, () => programmed(object)).toMatchObject({ status: 'True', reason: 'Programmed' });
      expect(await having(fleet, NEEDS_FILE)).toEqual(NAMES);
    });

    test('where a whole build lacks it, the other build keeps it', async () => {
      const [port = 0] = await freePorts(1);
      for (const name of ['a1', 'a2', 'a3']) give(name);
      const { fleet } = await start(() => {}, cwd);
      const object = entryFor(NEEDS_FILE, port);
      await cluster.apply(object);
      await isNamed(object, ['b1', 'b2']);
      await expect.poll(() => having(fleet, NEEDS_FILE)).toEqual(['a1', 'a2', 'a3']);
    });

    test('where everybody lacks it, it is the object that is wrong', async () => {
      const [port = 0] = await freePorts(1);
      const { fleet } = await start(() => {}, cwd);
      const object = entryFor(NEEDS_FILE, port);
      await cluster.apply(object);
      const message = expect.stringMatching(/Invalid path: ca\.pem"\. Nothing of this object is in force\.$/) as string;
      await cluster.changed(() => expect(programmed(object)).toMatchObject({ reason: 'Rejected', message }));
      expect(await having(fleet, NEEDS_FILE)).toEqual([]);
    });
  });
});

/** Clusters of one host need the file. */
const withFile = ((type: string, message: object): object => {
  const { name = '' } = message as { readonly name?: string };
  if (type !== types.cluster || !name.endsWith(NEEDS_FILE)) return message;
  const tls = { commonTlsContext: { validationContext: { trustedCa: { filename: FILE } } } };
  return {
    ...message,
    transportSocketMatches: [],
    transportSocket: { name: 'envoy.transport_sockets.tls', typedConfig: any(types.upstreamTls, tls) },
  };
}) as Amend;

/** How many listen on a port. */
async function listening({ members }: Fleet, port: number): Promise<number> {
  const dumps = await Promise.all(members.map((member) => member.admin('/listeners')));
  return dumps.filter((text) => text.includes(`:${port}\n`)).length;
}

/** Names of those that have a cluster of this host. */
async function having({ members }: Fleet, host: string): Promise<readonly string[]> {
  const dumps = await Promise.all(members.map(async ({ name, admin }) => [name, await admin('/clusters')] as const));
  return dumps.filter(([, text]) => text.includes(`${host}::`)).map(([name]) => name);
}
