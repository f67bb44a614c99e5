/** An address cannot be listened on. The message is one line that names it and the reason. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly code = 'LISTEN';

  /** @param what is to be served there. */
  constructor(what: string, address: { readonly host: string; readonly port: number }, cause: unknown) {
    super(`${what}: cannot listen on ${printAddress(address)}: ${reasonOf(cause)}`, { cause });
  }
}

function printAddress({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'unknown host',
};

/** grpc-js wraps the system's message in its own text. */
function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  const known = [code, ...(message ?? '').split(/\W+/)].find(
    (word) => word !== undefined && Object.hasOwn(reasons, word),
  );
  return known === undefined ? (message ?? String(cause)) : reasons[known]!;
}
