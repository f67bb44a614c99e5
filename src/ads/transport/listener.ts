import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Headcount } from './headcount.ts';
import { plainAddress } from './address.ts';

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Connections at one time. One address has half of them at most. */
  readonly most: number;
  connected(socket: Socket): void;
  /** A connection was closed at once: there are enough. */
  refused(): void;
  /** A connection could not be accepted, for example for want of file descriptors. The listener goes on. */
  failed(error: Error): void;
}

export interface Listener {
  readonly port: number;
  close(): void;
}

/** Takes connections, of one address not too many. Rejects if the address cannot be had. */
export async function listen({ host, port, most, connected, refused, failed }: ListenerOptions): Promise<Listener> {
  const connections = new Headcount(most);
  const server = createServer({ noDelay: true }, (socket) => {
    const address = plainAddress(socket.remoteAddress ?? 'unknown');
    if (connections.enter(address) !== undefined) {
      refused();
      socket.destroy();
      return;
    }
    socket.once('close', () => connections.leave(address));
    connected(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', failed);
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
