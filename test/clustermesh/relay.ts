import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Passes connections on to a port of 127.0.0.1, or does not. */
export interface Relay {
  readonly port: number;
  /** Connections now. */
  readonly connections: number;
  /** Nothing passes any more, and new connections are accepted and lead nowhere: nobody is told that etcd is away. */
  freeze(): void;
  /** Everything passes again that did before; what was held back first. */
  thaw(): void;
  /** All connections end. New ones are passed on. */
  cut(): void;
  stop(): void;
}

export async function startRelay(to: number): Promise<Relay> {
  const nears = new Set<Socket>();
  const fars = new Set<Socket>();
  let isFrozen = false;
  let held: (() => void)[] = [];
  const pass = (from: Socket, onto: Socket): void => {
    from.on('error', () => undefined);
    // It is read even if nothing passes: else nobody would see that it is closed.
    from.on('data', (data: Buffer) => {
      if (isFrozen) held.push(() => onto.write(data));
      else onto.write(data);
    });
    from.on('close', () => onto.destroy());
  };
  const server = createServer((near) => {
    nears.add(near);
    near.on('close', () => nears.delete(near));
    if (isFrozen) return void near.on('error', () => undefined).resume();
    const far = connect(to, '127.0.0.1');
    fars.add(far);
    far.on('close', () => fars.delete(far));
    pass(near, far);
    pass(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    held = [];
    for (const socket of [...nears, ...fars]) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return nears.size;
    },
    freeze: () => void (isFrozen = true),
    thaw() {
      isFrozen = false;
      for (const send of held.splice(0)) send();
    },
    cut,
    stop() {
      server.close();
      cut();
    },
  };
}
