import type { Clock } from '../base/clock.ts';
import { maySeeSecrets } from '../kube/client/access-review.ts';
import type { KubeApi } from '../kube/client/client.ts';
import { OwnRights, type Right, printRight } from '../kube/client/own-rights.ts';
import { type ReviewedToken, reviewToken } from '../kube/client/token-review.ts';
import type { Account } from '../model/credential.ts';

export interface RemoteAccountOptions {
  readonly api: KubeApi;
  /** Whether some proxy there needs Secrets. */
  readonly reviewsAccess: () => boolean;
  /** Whether roots are to be written there. */
  readonly writesRoots: () => boolean;
  /** The webhook configuration there that has them, too; absent: none. */
  readonly injectionWebhook?: string | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
}

const REVIEW_TOKENS: Right = { verb: 'create', group: 'authentication.k8s.io', resource: 'tokenreviews' };

const REVIEW_ACCESS: Right = { verb: 'create', group: 'authorization.k8s.io', resource: 'subjectaccessreviews' };

const roots = { group: '', resource: 'configmaps' };
const WRITE_ROOTS: readonly Right[] = [
  { ...roots, verb: 'create' },
  ...['list', 'watch', 'patch'].map((verb) => ({ ...roots, verb, name: 'istio-ca-root-cert' })),
];

const rightsToWebhook = (name: string): readonly Right[] =>
  ['list', 'watch', 'patch'].map((verb) => ({
    ...{ group: 'admissionregistration.k8s.io', resource: 'mutatingwebhookconfigurations' },
    ...{ verb, name },
  }));

/** What cannot be done without a right. */
const consequences = new Map<Right, string>([
  [REVIEW_TOKENS, 'proxies there cannot prove who they are'],
  [REVIEW_ACCESS, 'gateways there get no Secrets'],
  ...WRITE_ROOTS.map((right) => [right, 'Pods there do not get the roots of the mesh'] as const),
]);

/** What the account of a kubeconfig does besides reading. */
export class RemoteAccount {
  readonly #options: RemoteAccountOptions;
  readonly #rights: OwnRights;
  readonly #webhook: readonly Right[];

  constructor(options: RemoteAccountOptions) {
    this.#options = options;
    this.#rights = new OwnRights(options);
    this.#webhook = options.injectionWebhook === undefined ? [] : rightsToWebhook(options.injectionWebhook);
  }

  /** Resolves once the signal has fired. */
  run(): Promise<void> {
    return this.#rights.watch(() => this.#wanted(), this.#options);
  }

  /** Rejects with an `ApiError` if the API server does not answer. */
  review(token: string): Promise<ReviewedToken> {
    const { api, signal } = this.#options;
    return this.#rights.using(REVIEW_TOKENS, reviewToken(api, token, signal));
  }

  /** Whether an account there may have the Secrets of its namespace. Rejects with an `ApiError`. */
  maySeeSecrets(account: Account): Promise<boolean> {
    const { api, signal } = this.#options;
    return this.#rights.using(REVIEW_ACCESS, maySeeSecrets(api, account, signal));
  }

  /** For people: what is missing, and what to grant. */
  missingRights(): readonly string[] {
    const missing = Map.groupBy(
      this.#rights.missing(),
      (right) => consequences.get(right) ?? 'Pods there are not injected',
    );
    return Array.from(missing, ([consequence, rights]) => {
      const what = rights.map(printRight).join(', ');
      return `${consequence}: allow the account of the kubeconfig to ${what}`;
    });
  }

  #wanted(): readonly Right[] {
    const { reviewsAccess, writesRoots } = this.#options;
    return [
      REVIEW_TOKENS,
      ...(reviewsAccess() ? [REVIEW_ACCESS] : []),
      ...(writesRoots() ? [...WRITE_ROOTS, ...this.#webhook] : []),
    ];
  }
}
