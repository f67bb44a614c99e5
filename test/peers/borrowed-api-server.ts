import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { type ApiServerAccess, type ApiServerClient, agentOf, clientOf } from './api-server.ts';

/** The variable with the socket of the lender. */
export const LENDER = 'FAIRLEAD_TEST_API_SERVERS';

/** An API server that others had before and will have after: it runs as long as the tests do. */
export interface BorrowedApiServer extends ApiServerClient {
  /** Gives it back; it then forgets what it was told. */
  stop(): Promise<void>;
}

/** For tests that neither restart it nor need other arguments or controllers. Always call `stop`. */
export async function borrowApiServer(): Promise<BorrowedApiServer> {
  const path = process.env[LENDER];
  if (path === undefined) throw new Error('nobody lends API servers here');
  const socket = connect(path);
  const first = await new Promise<string>((resolve, reject) => {
    socket.once('error', reject).once('close', () => reject(new Error('no API server was lent')));
    createInterface(socket).once('line', resolve);
  });
  const access = JSON.parse(first) as ApiServerAccess;
  const agent = agentOf(access);
  return {
    ...clientOf(access, agent),
    async stop() {
      await agent.destroy();
      socket.destroy();
    },
  };
}
