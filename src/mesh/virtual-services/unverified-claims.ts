import type { Problem } from '../../api/problem.ts';
import { type VirtualServiceModel, nameOfParent } from '../../model/virtual-service.ts';
import { toldTo } from '../../settle/delegate.ts';
import type { RouteScope } from '../../settle/route-scope.ts';
import { matchCanHold } from '../../settle/virtual-service-selection.ts';

/** At most this many are reported for a VirtualService on a gateway. */
const mostRemarks = 20;

/** Matches that compare claims, on a gateway whose requests have none. */
export function unverifiedClaims(model: VirtualServiceModel, scope: RouteScope): readonly Problem[] {
  return claimsIn(model)
    .filter(({ match }) => matchCanHold(match, scope))
    .slice(0, mostRemarks)
    .map(({ object, field, claim }): Problem => {
      const message = `compares the claim ${claim}, but no RequestAuthentication selects the routers of gateway ${nameOfParent(scope.parent)}, so requests have no claims; add one for them.`;
      return toldTo(model, { object, field, reason: 'Ineffective', message });
    });
}

function claimsIn({ http }: VirtualServiceModel) {
  return http.flatMap(({ object, field, matches }) =>
    matches.flatMap((match, index) => {
      const [claim] = match.claims;
      return claim === undefined
        ? []
        : [{ object, field: `${field}.match[${index}]`, match, claim: claim.path.join('.') }];
    }),
  );
}
