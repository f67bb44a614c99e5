/**
 * A program that uses gRPC's own xDS:
 *
 *     echo.cjs serve NAME PORT [plain]   answers every call with its name; with `plain`, xDS has no part in it
 *     echo.cjs call TARGET               prints the answer, or why there is none
 *     echo.cjs idle                      until it is asked to end
 */
import { writeFileSync } from 'node:fs';
import { Client, Server, ServerCredentials, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { XdsChannelCredentials, XdsServer, XdsServerCredentials, register } from '@grpc/grpc-js-xds';
import { callEcho, echoMethod, sayName } from '../../peers/echo.ts';

/** There once it serves: for readiness probes, which cannot speak mutual TLS. */
const SERVING = '/tmp/serving';

function serve(name: string, port: string, isPlain: boolean): void {
  const insecure = ServerCredentials.createInsecure();
  const server = isPlain ? new Server() : new XdsServer();
  server.addService({ say: echoMethod() }, { say: sayName(name) });
  server.bindAsync(`0.0.0.0:${port}`, isPlain ? insecure : new XdsServerCredentials(insecure), (error) => {
    if (error) throw error;
    writeFileSync(SERVING, '');
  });
  process.on('SIGTERM', () => server.tryShutdown(() => process.exit(0)));
}

/** A status code is an answer, too. */
async function call(target: string): Promise<void> {
  const client = new Client(target, new XdsChannelCredentials(credentials.createInsecure()));
  console.log(await callEcho(client).catch(({ code, details }: ServiceError) => `${status[code]}: ${details}`));
  process.exit(0);
}

register();
const [, , command, ...args] = process.argv;
if (command === 'serve') serve(args[0]!, args[1]!, args[2] === 'plain');
else if (command === 'call') void call(args[0]!);
else {
  process.on('SIGTERM', () => process.exit(0));
  setInterval(() => {}, 60_000);
}
