import type { Labels } from '../../model/labels.ts';
import type { MeshService } from '../../model/service.ts';

const PERSISTENT_SESSION = ['istio.io/persistent-session', 'istio.io/persistent-session-header'];
const NO_PORT_TRANSLATION = 'experimental.istio.io/disable-gateway-port-translation';

/** What the labels of a Service or ServiceEntry mean. Others are not kept, so changing them changes nothing. */
export function readServiceLabels(labels: Labels = {}): Pick<MeshService, 'persistentSession' | 'translatesPorts'> {
  return {
    persistentSession: PERSISTENT_SESSION.some((name) => (labels[name] ?? '') !== ''),
    translatesPorts: labels[NO_PORT_TRANSLATION] === undefined,
  };
}
