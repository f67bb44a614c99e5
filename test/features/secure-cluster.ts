import { status as Status } from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { type Node, XdsClient } from '../conformance/xds-client.ts';
import { type Caller, secureCall } from '../harness/secure-call.ts';
import { SERVER, securePortIn } from '../peers/mesh-ca.ts';
import { Program, type ProgramOptions } from './program.ts';
import { Cluster, SECRETS, TOKEN_REVIEWS } from './sources.ts';

export { SERVER };

/** {@link securePortIn} a directory that ends with the test. */
export async function securePort(onEnd: OnEnd = onTestFinished) {
  return securePortIn(await temporaryDirectory(onEnd));
}

/** A cluster that knows one token for each service account: `namespace:name`, as a text. */
export async function secureCluster(): Promise<Cluster> {
  const made = await Cluster.create();
  made.server.cluster.virtual.set(TOKEN_REVIEWS, ({ spec }) => {
    const { token, audiences } = spec as { readonly token: string; readonly audiences: readonly string[] };
    const account = accountOf(token);
    if (account === undefined) return { status: { authenticated: false, error: 'unknown' } };
    const user = { username: `system:serviceaccount:${account}`, groups: ['system:serviceaccounts'] };
    return { status: { authenticated: true, audiences, user } };
  });
  return made;
}

/** A token as Kubernetes makes them, unsigned. */
export function tokenOf(account: string, seconds = 3600): string {
  const part = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url');
  return [part({ alg: 'none' }), part({ sub: account, exp: Date.now() / 1000 + seconds }), 'x'].join('.');
}

function accountOf(token: string): string | undefined {
  try {
    const { sub } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { sub?: string };
    return sub;
  } catch {
    return undefined;
  }
}

/** The roots that proxies have in a ConfigMap. */
function rootsOf(made: Cluster): string {
  const secret = made.server.cluster.object(SECRETS, 'istio-system', 'istio-ca-secret') as {
    readonly data?: Readonly<Record<string, string>>;
  };
  return Buffer.from(secret.data?.['root-cert.pem'] ?? '', 'base64').toString();
}

/** A program whose secure port is ready. */
export async function startSecure(
  made?: Cluster,
  options: ProgramOptions = {},
  settings: Readonly<Record<string, string>> = {},
) {
  made ??= await secureCluster();
  const program = await Program.start({ kubeconfig: made.kubeconfig, ...settings }, options);
  await program.logged('Ready');
  await program.logged('Signing certificates');
  return { made, program, roots: rootsOf(made) };
}

/** What a sidecar of the shop gets that asks for everything of a type: how many, or how it is refused. */
export async function askFor(
  typeUrl: string,
  program: Program,
  roots: string,
  caller: Caller,
  node: Partial<Node> & { readonly names?: readonly string[] } = {},
): Promise<number | string> {
  const client = new XdsClient(program.serving.ports.secure!, true, undefined, secureCall(roots, caller, SERVER));
  onTestFinished(() => client.close());
  const { names, ...rest } = node;
  const id = 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local';
  client.send({ typeUrl, node: { id, ...rest }, ...(names && { subscribe: names }) });
  const answer = await client.next().catch((error: { code: number; details: string }) => error);
  return 'resources' in answer ? answer.resources.size : `${Status[answer.code]}: ${answer.details}`;
}
