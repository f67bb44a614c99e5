import { readFile, stat } from 'node:fs/promises';
import { isIP, type Socket } from 'node:net';
import { connect, createSecureContext, type SecureContext } from 'node:tls';
import { CallCredentials, ChannelCredentials } from '@grpc/grpc-js';
import type { EtcdAccess, Target } from './access.ts';
import { EtcdError } from './error.ts';

type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;

/**
 * How one channel secures its connections; and it knows their sockets, because a channel that is closed leaves those
 * open that a silent server never answers on.
 */
export class ConnectionCredentials extends ChannelCredentials {
  readonly #target: Target;
  /** Undefined: no TLS. */
  readonly #secureContext: SecureContext | undefined;
  readonly #skipsVerification: boolean;
  readonly #sockets = new Set<Socket>();
  #isClosed = false;

  private constructor(target: Target, secureContext: SecureContext | undefined, skipsVerification: boolean) {
    super();
    this.#target = target;
    this.#secureContext = secureContext;
    this.#skipsVerification = skipsVerification;
  }

  /** Reads the files. Rejects with {@link EtcdError}. */
  static async read(target: Target, access: EtcdAccess): Promise<ConnectionCredentials> {
    if (!target.isSecure) return new ConnectionCredentials(target, undefined, false);
    const { caFile, certificate, skipsVerification = false } = access;
    const [ca, cert, key] = await Promise.all([caFile, certificate?.certFile, certificate?.keyFile].map(contentOf));
    try {
      const context = createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) });
      return new ConnectionCredentials(target, context, skipsVerification);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const files = [caFile, certificate?.certFile, certificate?.keyFile].filter((path) => path !== undefined);
      throw new EtcdError('NoCredentials', `certificate or key unusable in ${files.join(', ')}: ${reason}`, cause);
    }
  }

  /** All connections end now, in whatever state they are. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  override _isSecure(): boolean {
    return this.#secureContext !== undefined;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(): SecureConnector {
    return {
      connect: async (socket) => {
        if (this.#isClosed) throw new Error('closed');
        this.#sockets.add(socket);
        socket.once('close', () => this.#sockets.delete(socket));
        const secure = this.#secureContext !== undefined;
        return { socket: secure ? await this.#secure(socket, this.#secureContext) : socket, secure };
      },
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => CallCredentials.createEmpty(),
      destroy: () => undefined,
    };
  }

  #secure(socket: Socket, secureContext: SecureContext): Promise<Socket> {
    const { host } = this.#target;
    return new Promise((resolve, reject) => {
      const secured = connect(
        {
          ...{ socket, secureContext, host, ALPNProtocols: ['h2'] },
          // Names only: RFC 6066, section 3.
          ...(isIP(host) === 0 && { servername: host }),
          rejectUnauthorized: !this.#skipsVerification,
        },
        () => resolve(secured),
      );
      secured.on('error', reject);
      secured.on('close', () => reject(new Error('closed during the TLS handshake')));
    });
  }
}

/** Bytes. The authorities of a system take 200 KiB. */
const LARGEST = 4 * 1024 * 1024;

/** Undefined without a path. A device or a pipe may not end. */
async function contentOf(path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    const about = await stat(path);
    if (!about.isFile() || about.size > LARGEST) throw new Error('not a file with certificates or a key');
    return await readFile(path);
  } catch (cause) {
    const { message, code = message } = cause as NodeJS.ErrnoException;
    throw new EtcdError('NoCredentials', `cannot read ${path}: ${code}`, cause);
  }
}
