import { join } from 'node:path';
import { NAMES } from '../certificate/files.ts';
import { nodeOf } from '../node.ts';
import type { AgentSettings } from '../settings/settings.ts';

/** The file by which gRPC's libraries find the control plane through this agent. Source: gRFC A27, A29 and A36. */
export function grpcBootstrapOf(settings: AgentSettings): object {
  const { id, metadata, locality } = nodeOf(settings);
  const { outputCertificates: directory, xdsSocket } = settings.paths;
  return {
    xds_servers: [
      { server_uri: `unix://${xdsSocket}`, channel_creds: [{ type: 'insecure' }], server_features: ['xds_v3'] },
    ],
    node: {
      id,
      metadata: { ...metadata, GENERATOR: 'grpc' },
      locality: { region: locality?.region ?? '', zone: locality?.zone ?? '', sub_zone: locality?.subZone ?? '' },
    },
    server_listener_resource_name_template: 'xds.istio.io/grpc/lds/inbound/%s',
    ...(directory !== undefined && {
      certificate_providers: {
        default: {
          plugin_name: 'file_watcher',
          config: {
            certificate_file: join(directory, NAMES.chain),
            private_key_file: join(directory, NAMES.key),
            ca_certificate_file: join(directory, NAMES.roots),
            refresh_interval: '900s',
          },
        },
      },
    }),
  };
}
