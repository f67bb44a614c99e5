import { createServer, type AddressInfo, type Socket } from 'node:net';
import { connect } from 'node:tls';
import type { WorkloadCertificate } from '../peers/mesh-ca.ts';

/**
 * Pods have addresses that EndpointSlices accept; their programs are on this machine. As many letters either way, so
 * that nothing around them moves.
 */
const [POD, LOCAL] = ['10.244.', '127.77.'].map((text) => Buffer.from(text)) as [Buffer, Buffer];

/** A piece of what is served may end in an address; its rest follows at once, or it was none. Milliseconds. */
const REST_MS = 5;

/** Where the program in the Pod with this address is. */
export const localOf = (address: string): string => address.replace(POD.toString(), LOCAL.toString());

/**
 * A proxy's way to the control plane: to the secure port of the first replica that accepts it. Like an agent it has the
 * certificate, and speaks plaintext with the Envoy beside it. On it, Pods have local addresses.
 */
export class ProxyWay {
  readonly #server;
  readonly #certificate: WorkloadCertificate;
  readonly #sockets = new Set<Socket>();
  #ports: readonly number[] = [];

  private constructor(certificate: WorkloadCertificate) {
    this.#certificate = certificate;
    this.#server = createServer((client) => this.#attempt(client, this.#ports));
  }

  static async open(certificate: WorkloadCertificate): Promise<ProxyWay> {
    const way = new ProxyWay(certificate);
    await new Promise<void>((resolve) => way.#server.listen(0, '127.0.0.1', resolve));
    return way;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Of replicas, the preferred one first. Connections that exist stay. */
  lead(...ports: readonly number[]): void {
    this.#ports = ports;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #attempt(client: Socket, [port, ...others]: readonly number[]): void {
    if (port === undefined) return void client.destroy();
    const { certificate: cert, key, roots: ca, name: servername } = this.#certificate;
    const upstream = connect({ port, host: '127.0.0.1', cert, key, ca, servername, ALPNProtocols: ['h2'] });
    const refused = (): void => this.#attempt(client, others);
    upstream.once('error', refused).once('secureConnect', () => {
      upstream.off('error', refused);
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket
          .on('error', () => {})
          .on('close', () => {
            this.#sockets.delete(socket);
            client.destroy();
            upstream.destroy();
          });
      }
      client.pipe(upstream);
      localize(upstream, client);
    });
  }
}

function localize(from: Socket, to: Socket): void {
  let kept = Buffer.alloc(0);
  let timer: NodeJS.Timeout | undefined;
  const send = (bytes: Buffer): void => {
    if (bytes.length > 0 && !to.destroyed) to.write(bytes);
  };
  from.on('data', (chunk: Buffer) => {
    clearTimeout(timer);
    const bytes = Buffer.concat([kept, chunk]);
    for (let at = bytes.indexOf(POD); at >= 0; at = bytes.indexOf(POD, at)) LOCAL.copy(bytes, at);
    const rest = beginningAtEnd(bytes);
    kept = bytes.subarray(bytes.length - rest);
    send(bytes.subarray(0, bytes.length - rest));
    if (rest > 0)
      timer = setTimeout(() => {
        send(kept);
        kept = Buffer.alloc(0);
      }, REST_MS);
  });
}

/** How much of an address may be at the end. */
function beginningAtEnd(bytes: Buffer): number {
  for (let length = Math.min(POD.length - 1, bytes.length); length > 0; length--)
    if (bytes.subarray(bytes.length - length).equals(POD.subarray(0, length))) return length;
  return 0;
}
