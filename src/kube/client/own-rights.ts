import { isObject } from '../../api/json.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { ApiError } from './api-error.ts';
import type { KubeApi } from './client.ts';
import { collectionPath } from './paths.ts';

/** Something that an account must be allowed to do. */
export interface Right {
  readonly verb: string;
  /** API group; empty: core. */
  readonly group: string;
  readonly resource: string;
  /** Of one object; absent: all. */
  readonly name?: string;
}

export interface OwnRightsOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
}

const type = { group: 'authorization.k8s.io', version: 'v1', plural: 'selfsubjectaccessreviews' };
/** Milliseconds between two looks: while something is missing, and otherwise. */
const [MISSING, REFRESH] = [30_000, 600_000];
/** Milliseconds that an answer may take. */
const PATIENCE = 10_000;

/**
 * What our own account may do. Asked again and again, as rights change; what a request has shown meanwhile counts at
 * once. A right of which nothing is known is not missing.
 */
export class OwnRights {
  private readonly options: OwnRightsOptions;
  private readonly allowed = new Map<Right, boolean>();

  constructor(options: OwnRightsOptions) {
    this.options = options;
  }

  /** The watched rights that the account lacks. */
  missing(): readonly Right[] {
    return [...this.allowed].flatMap(([right, allowed]) => (allowed ? [] : [right]));
  }

  /** The outcome of a request that needs this right, passed on. */
  async using<T>(right: Right, request: Promise<T>): Promise<T> {
    try {
      const found = await request;
      this.allowed.set(right, true);
      return found;
    } catch (error) {
      if (error instanceof ApiError && error.code === 403) this.allowed.set(right, false);
      throw error;
    }
  }

  /** Looks after these rights until the signal fires; never rejects. */
  async watch(rights: () => readonly Right[], { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, random } = this.options;
    while (!signal.aborted) {
      const wanted = rights();
      for (const right of this.allowed.keys()) if (!wanted.includes(right)) this.allowed.delete(right);
      for (const right of wanted) {
        const allowed = await this.ask(right, signal).catch(() => undefined);
        if (allowed !== undefined) this.allowed.set(right, allowed);
      }
      await sleep(clock, (this.missing().length > 0 ? MISSING : REFRESH) * (0.9 + 0.2 * random()), { signal });
    }
  }

  private async ask({ verb, group, resource, name }: Right, signal: AbortSignal): Promise<boolean | undefined> {
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb, group, resource, ...(name !== undefined && { name }) } },
    };
    const answer = await this.options.api.post(collectionPath(type), body, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]),
    });
    const status = isObject(answer) && isObject(answer['status']) ? answer['status'] : {};
    return typeof status['allowed'] === 'boolean' ? status['allowed'] : undefined;
  }
}

/** As it is written in a rule: `create tokenreviews.authentication.k8s.io`. */
export function printRight({ verb, group, resource, name }: Right): string {
  return `${verb} ${resource}${group === '' ? '' : `.${group}`}${name === undefined ? '' : ` (${name})`}`;
}
