import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Headcount } from './headcount.ts';
import { plainAddress } from './address.ts';

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Maximum number of connections. One address may have at most half of them. */
  readonly most: number;
  connected(socket: Socket): void;
  /** A connection was closed at once: the maximum is reached. */
  refused(): void;
  /** A connection could not be accepted, for example because file descriptors ran out. The listener goes on. */
  failed(error: Error): void;
}

export interface Listener {
  readonly port: number;
  close(): void;
}

/** Accepts connections, with a limit per address. Rejects if it cannot listen on the address. */
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
