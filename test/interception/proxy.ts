import { chmod, copyFile, constants, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MeshLab, proxy } from '../harness/lab.ts';
import { pathOf } from '../peers/peer.ts';
import { poll, startProcess } from '../peers/process.ts';

/** How many connections Envoy has taken since it was last asked, by listener. */
export interface Passed {
  readonly outbound: number;
  readonly inbound: number;
}

/** An Envoy in a network namespace, as the user that proxies have, with the listeners that Fairlead serves to a Pod. */
export interface LabProxy {
  passed(): Promise<Passed>;
  stop(): Promise<void>;
}

export async function startProxy(namespace: string, addresses: readonly string[]): Promise<LabProxy> {
  // Its user may read neither our home nor what others own.
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-interception-'));
  await chmod(directory, 0o777);
  const [program, file, socket] = ['envoy', 'envoy.json', 'admin'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await copyFile(pathOf('envoy'), program, constants.COPYFILE_FICLONE);
  await chmod(program, 0o755);
  await writeFile(file, JSON.stringify(bootstrapOf(addresses, socket)), { mode: 0o644 });
  const envoy = startProcess('ip', [
    ...['netns', 'exec', namespace, 'setpriv', '--reuid', '1337', '--regid', '1337', '--clear-groups', '--'],
    ...[program, '-c', file, '--disable-hot-restart', '--concurrency', '1', '-l', 'warning'],
  ]);
  const stop = async (): Promise<void> => {
    await envoy.stop();
    await rm(directory, { recursive: true, force: true });
  };
  let before: Passed = { outbound: 0, inbound: 0 };
  try {
    await poll('Envoy', async () => ((await ask(socket, '/ready')).startsWith('LIVE') ? true : undefined), {
      process: envoy,
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    async passed() {
      const stats = await ask(socket, '/stats?filter=^listener.*_1500[16]\\.downstream_cx_total$');
      const count = (port: number): number =>
        [...stats.matchAll(new RegExp(`_${port}\\.downstream_cx_total: (\\d+)`, 'g'))].reduce(
          (sum, [, total]) => sum + Number(total),
          0,
        );
      const now = { outbound: count(15001), inbound: count(15006) };
      const passed = { outbound: now.outbound - before.outbound, inbound: now.inbound - before.inbound };
      before = now;
      return passed;
    },
    stop,
  };
}

function bootstrapOf(addresses: readonly string[], socket: string): object {
  const mesh = new MeshLab([], [proxy('pod.shop', {}, { INSTANCE_IPS: addresses.join(',') })]);
  const { lds, cds } = mesh.json('pod.shop');
  const plain = (resources: readonly unknown[]) =>
    resources.map((resource) => ({ ...(resource as object), '@type': undefined }));
  return {
    admin: { address: { pipe: { path: socket, mode: 0o666 } } },
    static_resources: { listeners: plain(lds), clusters: plain(cds) },
  };
}

function ask(socketPath: string, path: string): Promise<string> {
  return new Promise((resolve) => {
    request({ socketPath, path: encodeURI(path) }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
    })
      .on('error', () => resolve(''))
      .end();
  });
}
