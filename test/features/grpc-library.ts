import { Client, credentials, ServerCredentials } from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import { echoMethod, sayName } from '../peers/echo.ts';

// It reads its environment when it is loaded. Without this, it refuses listeners with policies.
process.env['GRPC_XDS_EXPERIMENTAL_RBAC'] = 'true';
const { register, XdsChannelCredentials, XdsServer, XdsServerCredentials } = await import('@grpc/grpc-js-xds');
register();

/** The option by which gRPC's library for Node takes a bootstrap of its own for each channel. */
const BOOTSTRAP = 'grpc.TEST_ONLY_DO_NOT_USE_IN_PROD.xds_bootstrap_config';

/** Files with the certificate of a workload. */
export interface WorkloadFiles {
  readonly certificate: string;
  readonly key: string;
  readonly roots: string;
}

export type LibraryOptions = WithoutAgent | { readonly bootstrap: string };

interface WithoutAgent {
  /** Of the control plane, on 127.0.0.1. */
  readonly port: number;
  /** The workload and its namespace; `client.shop` by default. */
  readonly workload?: string;
  readonly files?: WorkloadFiles | undefined;
}

/** As Istio's agent writes it for gRPC, but without the agent. */
function bootstrap(options: LibraryOptions): string {
  if ('bootstrap' in options) return options.bootstrap;
  const { port, workload = 'client.shop', files } = options;
  return JSON.stringify({
    xds_servers: [
      { server_uri: `127.0.0.1:${port}`, channel_creds: [{ type: 'insecure' }], server_features: ['xds_v3'] },
    ],
    node: {
      id: `sidecar~127.0.0.1~${workload}~shop.svc.cluster.local`,
      metadata: { GENERATOR: 'grpc' },
      locality: { region: '', zone: '', sub_zone: '' },
    },
    server_listener_resource_name_template: 'xds.istio.io/grpc/lds/inbound/%s',
    ...(files && {
      certificate_providers: {
        default: {
          plugin_name: 'file_watcher',
          config: {
            certificate_file: files.certificate,
            private_key_file: files.key,
            ca_certificate_file: files.roots,
            refresh_interval: '900s',
          },
        },
      },
    }),
  });
}

/** A client of a name of the mesh, until the test is over. */
export function dial(name: string, options: LibraryOptions): Client {
  const client = new Client(`xds:///${name}`, new XdsChannelCredentials(credentials.createInsecure()), {
    [BOOTSTRAP]: bootstrap(options),
  });
  onTestFinished(() => client.close());
  return client;
}

/** Serves the echo on all addresses until the test is over; settles once the control plane lets it. */
export async function serveEcho(name: string, port: number, options: LibraryOptions, path?: string): Promise<void> {
  const server = new XdsServer({ [BOOTSTRAP]: bootstrap(options) });
  onTestFinished(() => server.forceShutdown());
  server.addService({ say: echoMethod(path) }, { say: sayName(name) });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`0.0.0.0:${port}`, new XdsServerCredentials(ServerCredentials.createInsecure()), (error) =>
      error ? reject(error) : resolve(),
    );
  });
}
