import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** Field 6 of a node, `user_agent_name`: five letters either way, so nothing around it moves. */
const [REAL, OTHER] = ['\x32\x05envoy', '\x32\x05other'].map((text) => Buffer.from(text)) as [Buffer, Buffer];

/** A way to a control plane on which Envoys are of another build: they call themselves `other`. */
export async function startOtherBuild(port: number): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => [client, upstream].forEach((each) => void each.destroy()));
    }
    let isTold = false;
    client.on('data', (chunk: Buffer) => {
      const at = isTold ? -1 : chunk.indexOf(REAL);
      if (at >= 0) OTHER.copy(chunk, at);
      isTold ||= at >= 0;
      upstream.write(chunk);
    });
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
