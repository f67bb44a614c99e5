import type { EtcdAccess } from '../../src/etcd/access.ts';

/** The content of Cilium's configuration file for an etcd. */
export function configurationOf({ endpoints, caFile, certificate }: EtcdAccess): string {
  return [
    'endpoints:',
    ...endpoints.map((endpoint) => `- ${endpoint}`),
    `trusted-ca-file: ${caFile}`,
    `cert-file: ${certificate?.certFile}`,
    `key-file: ${certificate?.keyFile}`,
  ].join('\n');
}
