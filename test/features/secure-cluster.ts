import { Program, type ProgramOptions } from './program.ts';
import { Cluster, SECRETS, TOKEN_REVIEWS } from './sources.ts';

export const SERVER = 'fairlead.istio-system.svc';

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
