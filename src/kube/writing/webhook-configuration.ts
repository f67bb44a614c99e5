import { isObject, type Json } from '../../api/json.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { ApiError, errorOfTransport } from '../client/api-error.ts';
import { Backoff } from '../../base/backoff.ts';
import type { Budget } from '../client/budget.ts';
import { correctBundles } from './ca-bundle.ts';
import type { KubeApi } from '../client/client.ts';
import { FOREIGN_RESPONSE } from '../reading/cluster-reader.ts';
import { Informer } from '../reading/informer.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';
import { objectPath } from '../client/paths.ts';
import { type WebhookRule, askingFor, failing, failsClosed, failsOpen } from './webhook-entries.ts';

export interface WebhookConfigurationOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  readonly kind: 'MutatingWebhookConfiguration' | 'ValidatingWebhookConfiguration';
  /** No other object is read or written. */
  readonly name: string;
  /** PEM; empty until there is an authority. */
  readonly roots: () => string;
  /** Others run the API server: what it may make us keep is limited. */
  readonly foreign?: { readonly budget: Budget };
  /** What we decide about. */
  readonly rules: readonly WebhookRule[];
  /** Present if what no replica can answer is to be refused, which begins once the API server is seen to reach one. */
  readonly probe?: Probe;
}

export interface Probe {
  /** Rejects, with what the API server says, when one of the webhooks refuses an object that it must refuse. */
  readonly ask: (webhooks: readonly Json[], signal: AbortSignal) => Promise<void>;
  /** Whether there is nothing to be refused where the kind of that object is not installed. */
  readonly isNeedlessWithoutKind: boolean;
}

const plurals = {
  MutatingWebhookConfiguration: 'mutatingwebhookconfigurations',
  ValidatingWebhookConfiguration: 'validatingwebhookconfigurations',
} as const;

/** A write that others undo within this time is repeated later and later, up to it. Milliseconds. */
const CALM = 60_000;
const FIRST_DELAY = 1_000;
/** Before a failed write is tried again. */
const RETRY = 2_000;
/** The same if it is forbidden, and may be so for good. */
const FORBIDDEN = 60_000;

type Configuration = KubernetesObject & { readonly webhooks: readonly Json[] };

/**
 * Keeps in one webhook configuration what its owner leaves out, so that no tool undoes it: the roots by which the API server
 * recognizes this control plane, what it asks about, and what becomes of that while nobody answers. Every replica does:
 * what they write is the same, and they need not know of each other.
 */
export class WebhookConfiguration {
  private readonly options: WebhookConfigurationOptions;
  private readonly type: { readonly group: string; readonly version: string; readonly plural: string };
  private current: Configuration | undefined;
  private roots = { pem: '', since: 0 };
  /** Something has happened since the last look. */
  private isDue = false;
  private wake = (): void => undefined;
  private writtenAt = Number.NEGATIVE_INFINITY;
  private readonly contested: Backoff;
  private readonly unproven: Backoff;

  constructor(options: WebhookConfigurationOptions) {
    const { kind, random } = options;
    this.options = options;
    this.type = { group: 'admissionregistration.k8s.io', version: 'v1', plural: plurals[kind] };
    this.contested = new Backoff({ base: FIRST_DELAY, cap: CALM, random });
    this.unproven = new Backoff({ base: FIRST_DELAY, cap: CALM, random });
  }

  get name(): string {
    return this.options.name;
  }

  /** Whether the API server has been told our roots. Undefined without such a configuration, and before there are roots. */
  get isRight(): boolean | undefined {
    const roots = this.options.roots();
    if (this.current === undefined || roots === '') return undefined;
    return correctBundles(this.current.webhooks, { roots, age: 0 }).webhooks === undefined;
  }

  /** The roots have changed, or may have. */
  changed(): void {
    this.isDue = true;
    this.wake();
  }

  /** Works until the signal fires; never rejects. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { api, clock, random, log, outages, name, foreign } = this.options;
    const take = (object: KubernetesObject | undefined): void => {
      this.current = object as Configuration | undefined;
      this.changed();
    };
    const informer = new Informer({
      name: this.title,
      type: this.type,
      query: { fieldSelector: `metadata.name=${name}` },
      shape: { trim, same: (a, b) => JSON.stringify(a) === JSON.stringify(b) },
      sink: { replace: ([object]) => take(object), upsert: take, delete: () => take(undefined) },
      api,
      clock,
      random,
      log,
      outages,
      ...(foreign && { budget: foreign.budget, longestEvent: FOREIGN_RESPONSE }),
    });
    await Promise.all([informer.run({ signal }), this.work(signal)]);
  }

  private get title(): string {
    return `${this.options.kind} ${this.options.name}`;
  }

  /** For the log of outages: apart from those of reading. */
  private get writing(): string {
    return `writing ${this.title}`;
  }

  private async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.isDue = false;
      const again = await this.look(signal);
      if (!this.isDue) await this.nextLook(again, signal);
    }
  }

  /** Until something happens, or for this long. */
  private async nextLook(ms: number | undefined, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.wake = () => woken.abort();
    await sleep(this.options.clock, ms ?? CALM, { signal: AbortSignal.any([signal, woken.signal]) });
    this.wake = () => undefined;
  }

  /** Does what is to be done now. Milliseconds until there may be more to do by itself. */
  private async look(signal: AbortSignal): Promise<number | undefined> {
    const { clock, log, outages, roots } = this.options;
    const pem = roots();
    if (pem !== this.roots.pem) this.roots = { pem, since: clock.now() };
    const { current } = this;
    if (current === undefined || pem === '') return undefined;
    try {
      const bundles = correctBundles(current.webhooks, { roots: pem, age: clock.now() - this.roots.since });
      const webhooks = this.asking(bundles.webhooks ?? current.webhooks) ?? bundles.webhooks;
      if (webhooks !== undefined) {
        await this.waitIfContested(signal);
        // Meanwhile it may have changed.
        if (signal.aborted || this.current !== current || roots() !== pem) return 0;
        await this.write(current, webhooks, signal);
        log.info('Webhook configuration is that of this control plane', { configuration: this.title });
        return undefined;
      }
      const unproven = await this.closeIfProven(current, signal);
      outages.end(this.writing);
      return minimum(bundles.again, unproven);
    } catch (cause) {
      if (signal.aborted) return undefined;
      const error = errorOfTransport(cause);
      // It is gone, or another writer was faster: the watch tells.
      if (error.code === 404 || error.code === 409) return undefined;
      outages.begin(this.writing, error);
      return error.code === 403 ? FORBIDDEN : Math.max(RETRY, error.retryAfter);
    }
  }

  /** With the right rules, and open where it is to be so; undefined: it is. */
  private asking(webhooks: readonly Json[]): readonly Json[] | undefined {
    const { rules, probe } = this.options;
    const asking = askingFor(webhooks, rules);
    if (probe !== undefined || failsOpen(asking ?? webhooks)) return asking;
    return failing(asking ?? webhooks, 'Ignore');
  }

  /** Someone else writes other roots: neither side wins by being faster. */
  private async waitIfContested(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.options;
    if (clock.now() - this.writtenAt > 2 * CALM) return this.contested.reset();
    log.warn('Someone else changes the webhook configuration, too', { configuration: this.title });
    await sleep(clock, this.contested.next(), { signal });
  }

  private async write({ metadata }: Configuration, webhooks: readonly Json[], signal: AbortSignal): Promise<void> {
    const { api, clock, name } = this.options;
    const { resourceVersion } = metadata;
    const body = { metadata: { resourceVersion }, webhooks };
    const written = await api.patch(objectPath(this.type, '', name), body, { signal });
    this.writtenAt = clock.now();
    // The watch says the same soon.
    if (isObject(written)) this.current = trim(written) as Configuration;
  }

  /** Milliseconds until the next probe, if one is needed. */
  private async closeIfProven(current: Configuration, signal: AbortSignal): Promise<number | undefined> {
    const { log, probe } = this.options;
    if (probe === undefined || failsClosed(current.webhooks)) return undefined;
    if (!(await isProven(probe, current.webhooks, signal))) return this.unproven.next();
    this.unproven.reset();
    if (this.current !== current) return 0;
    await this.write(current, failing(current.webhooks, 'Fail'), signal);
    log.info('The API server reaches this control plane: from now on, it refuses what nobody can answer', {
      configuration: this.title,
    });
    return undefined;
  }
}

/** Whether one of our webhooks has refused the object. */
async function isProven(probe: Probe, webhooks: readonly Json[], signal: AbortSignal): Promise<boolean> {
  const names = webhooks.map(({ name }) => String(name));
  try {
    await probe.ask(webhooks, signal);
    return false;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 404) return probe.isNeedlessWithoutKind;
    // Istio's webhook refuses the same object.
    if (names.some((name) => error.message.includes(`admission webhook "${name}" denied the request`))) return true;
    if (error.code === 403 && !error.message.includes('denied the request')) throw error;
    return false;
  }
}

function minimum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

function trim(raw: Json): KubernetesObject {
  const { name, uid, resourceVersion } = isObject(raw['metadata']) ? raw['metadata'] : {};
  const webhooks = Array.isArray(raw['webhooks']) ? raw['webhooks'].filter(isObject) : [];
  return {
    apiVersion: '',
    kind: '',
    metadata: { name, uid, resourceVersion },
    webhooks,
  } as unknown as KubernetesObject;
}
