import { join } from 'node:path';
import { readCertificate, readText } from './certificate/files.ts';
import { hostOf } from './node.ts';
import type { AgentSettings } from './settings/settings.ts';
import { type ControlPlaneOptions, NotDialed } from './xds/dial.ts';

/** How the authority that signs certificates is reached: `controlPlaneAuthPolicy` says nothing of it. */
export const certificateAuthority = (settings: AgentSettings): ControlPlaneOptions =>
  controlPlane(settings, settings.certificateAddress, true);

/** How the control plane at this address is reached, and what proves to it who this workload is. */
export function controlPlane(
  settings: AgentSettings,
  address: string,
  hasTls = settings.proxy.controlPlaneTls,
): ControlPlaneOptions {
  const { paths, env, clusterId } = settings;
  const name = env['ISTIOD_SAN'] ?? '';
  const headers: Record<string, string> = { clusterid: clusterId };
  for (const [key, value] of Object.entries(env))
    if (key.startsWith('XDS_HEADER_')) headers[key.slice('XDS_HEADER_'.length)] = value;
  const { provenCertificates: proven, mountedCertificates: mounted } = paths;
  const token = (): string | undefined => readText(paths.token)?.trim();
  return {
    address,
    ...(name !== ''
      ? { name }
      : ['localhost', '127.0.0.1', '::1'].includes(hostOf(address)) && { name: 'istiod.istio-system.svc' }),
    ...(hasTls &&
      !address.endsWith(':15010') && {
        tls: {
          roots: () =>
            rootsOf(proven === undefined ? [paths.roots] : [join(proven, 'root-cert.pem'), paths.roots], env),
          certificate: () => {
            if (proven !== undefined) return readCertificate(proven);
            // Another authority may have signed it, which the control plane need not know: a token is surer.
            return mounted === undefined || token() !== undefined ? undefined : readCertificate(mounted);
          },
        },
      }),
    token,
    headers,
  };
}

function rootsOf(files: readonly string[], env: Readonly<Record<string, string>>): string | undefined {
  if (env['XDS_ROOT_CA'] === 'SYSTEM') return undefined;
  for (const file of files) {
    const text = readText(file);
    if (text !== undefined) return text;
  }
  throw new NotDialed(`there are no roots at ${files.at(-1)}; is the ConfigMap istio-ca-root-cert mounted?`);
}
