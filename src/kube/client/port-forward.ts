import { Duplex } from 'node:stream';
import { WebSocket } from 'undici';
import type { KubeClient } from './client.ts';
import { objectPath } from './paths.ts';

/** Of one port, bytes follow 0 and errors follow 1. On both, the first message repeats the number of the port. */
const PROTOCOL = 'v4.channel.k8s.io';
const DATA = 0;
const ERROR = 1;

/** A connection to a port of a Pod, as `kubectl port-forward` makes it: in the Pod, it comes from the same machine. */
export async function forwardPort(
  client: KubeClient,
  pod: { readonly namespace: string; readonly name: string },
  port: number,
  signal: AbortSignal,
): Promise<Duplex> {
  const path = `${objectPath(PODS, pod.namespace, pod.name)}/portforward`;
  const { server, headers, dispatcher } = await client.config.credentials({ signal });
  const url = `${server.replace(/^http/, 'ws')}${path}?ports=${port}`;
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, each] as [string, string]),
  );
  const socket = new WebSocket(url, { protocols: [PROTOCOL], dispatcher, headers: lines });
  socket.binaryType = 'arraybuffer';
  const opened = await new Promise<boolean>((resolve) => {
    socket.addEventListener('open', () => resolve(true), { once: true });
    socket.addEventListener('error', () => resolve(false), { once: true });
    signal.addEventListener('abort', () => resolve(false), { once: true });
  });
  if (opened) return streamOf(socket, signal);
  socket.close();
  signal.throwIfAborted();
  // A WebSocket does not say why it was refused. An ordinary request is refused, too.
  await client.get(path, { query: { ports: port }, signal });
  throw new Error('the API server does not forward ports');
}

const PODS = { group: '', version: 'v1', plural: 'pods' };

function streamOf(socket: WebSocket, signal: AbortSignal): Duplex {
  const begun = new Set<number>();
  const stream = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _, done) => {
      socket.send(new Uint8Array([DATA, ...chunk]));
      done();
    },
    destroy: (error, done) => {
      socket.close();
      done(error);
    },
    signal,
  });
  socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
    if (!(data instanceof ArrayBuffer)) return;
    const bytes = Buffer.from(data);
    const [channel = DATA] = bytes;
    const content = bytes.subarray(begun.has(channel) ? 1 : 3);
    begun.add(channel);
    if (content.length === 0) return;
    if (channel === ERROR) stream.destroy(new Error(content.toString().trim()));
    else stream.push(content);
  });
  socket.addEventListener('close', () => stream.push(null), { once: true });
  socket.addEventListener('error', () => stream.destroy(new Error('the connection to the API server broke')));
  return stream;
}
