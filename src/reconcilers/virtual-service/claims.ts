import { type VirtualServiceModel, meshGateway } from '../../model/virtual-service.ts';
import type { Findings } from '../field.ts';

/**
 * Reports matches on claims where tokens are not known when a route is chosen. Only gateways choose it again after they
 * have verified the token; Istio refuses such matches in objects without a gateway.
 */
export function checkClaims({ http, hosts, gateways }: VirtualServiceModel, findings: Findings): void {
  // Where a delegate applies is up to those who delegate to it.
  if (hosts.length === 0) return;
  const hasGateway = gateways.some((gateway) => gateway !== meshGateway);
  for (const route of http)
    for (const [index, match] of route.matches.entries()) {
      const [claim] = match.claims;
      if (claim === undefined) continue;
      const field = `${route.field}.match[${index}]`;
      const name = claim.path.join('.');
      if (!hasGateway)
        findings.report(
          field,
          'Invalid',
          `compares the claim ${name}, which only gateways know when they choose a route; add one to spec.gateways, or leave out the claim.`,
        );
      else if ((match.gateways.length > 0 ? match.gateways : gateways).includes(meshGateway))
        findings.report(
          field,
          'Ineffective',
          `compares the claim ${name}, which sidecars never know when they choose a route; list the gateways that it is for, without mesh.`,
        );
    }
}
