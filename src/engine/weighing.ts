import { apartFromRestrictions, type Rejections, tenantsIn } from './rejections.ts';
import { isProven, type Recipient } from '../ads/rollouts/recipient.ts';
import type { Concern } from '../ads/rollouts/rollout.ts';
import type { ProgressOfObjects } from './progress.ts';
import type { Suspect, Suspects } from './suspects.ts';

export interface WeighingOptions {
  readonly progress: Pick<ProgressOfObjects, 'get' | 'rollouts'>;
  readonly isLibrary: (client: Recipient) => boolean;
  /** Of the newest generation of an object. */
  readonly namespaceOf: (key: string) => string | undefined;
  readonly suspects: Pick<Suspects, 'isCleared'>;
}

/** Whether rejections count against an object: with the other replicas, only with this one, or not. */
type Reach = 'everywhere' | 'here' | 'nowhere';

/** Objects, and the rejections that count against them. */
export interface Weighed {
  readonly suspects: readonly Suspect[];
  readonly rejections: Rejections;
  readonly reach: Reach;
  /** A restriction that may be to blame as well. */
  readonly beside: Suspect | undefined;
}

/** Decides which rejections count against which objects. */
export class Weighing {
  readonly #options: WeighingOptions;

  constructor(options: WeighingOptions) {
    this.#options = options;
  }

  /**
   * Those who may as well reject a restriction count only if the others are not enough, and only once.
   * @param all these and what else the same clients reject: that may be to blame as well, unless it is not theirs to decide.
   */
  weigh(own: readonly Suspect[], all: readonly Suspect[], rejections: Rejections): Weighed {
    const { progress } = this.#options;
    const { apart, restrictions } = apartFromRestrictions(rejections, (key) => progress.rollouts.get(key));
    for (const suspects of all.length > own.length ? [all, own] : [own]) {
      const reach = this.#reachOf(suspects, apart);
      if (reach !== 'nowhere') return { suspects, rejections: apart, reach, beside: undefined };
    }
    const [beside] = [...restrictions].flatMap(({ key }): Suspect[] => {
      const { object } = progress.get(key) ?? {};
      return object === undefined ? [] : [{ key, uid: object.uid, generation: object.generation }];
    });
    if (beside === undefined) return { suspects: own, rejections: apart, reach: 'nowhere', beside };
    const untried = own.filter((each) => !this.#options.suspects.isCleared(each, beside));
    return { suspects: untried, rejections, reach: this.#reachOf(untried, rejections), beside };
  }

  #reachOf(suspects: readonly Suspect[], rejections: Rejections): Reach {
    const areLibraries = [...rejections.keys()].every(this.#options.isLibrary);
    return areLibraries ? this.#reachOfLibraries(suspects, rejections) : this.#reachOfAny(suspects, rejections);
  }

  /**
   * Where these count against the objects. One tenant alone may say so only of objects of its own, or where they concern
   * nobody else: with any resource, since the object is taken back whole.
   */
  #reachOfAny(suspects: readonly Suspect[], rejections: Rejections): Reach {
    const tenants = tenantsIn(rejections);
    const [tenant] = tenants;
    if (tenants.size !== 1) return tenants.size > 1 ? 'everywhere' : 'nowhere';
    if (suspects.every(({ key }) => this.#options.namespaceOf(key) === tenant)) return 'everywhere';
    const { rollouts } = this.#options.progress;
    for (const { key } of suspects)
      for (const concern of rollouts.get(key)?.present() ?? []) if (concernsOthers(concern, tenant!)) return 'nowhere';
    return 'here';
  }

  /** What a library does not understand, an Envoy may. */
  #reachOfLibraries(suspects: readonly Suspect[], rejections: Rejections): Reach {
    if (this.#reachOfAny(suspects, rejections) === 'nowhere') return 'nowhere';
    return suspects.some(({ key }) => this.#concernsEnvoys(key)) ? 'nowhere' : 'here';
  }

  /** As far as clients have looked, here. */
  #concernsEnvoys(key: string): boolean {
    const { progress, isLibrary } = this.#options;
    const concerns = [...(progress.rollouts.get(key)?.present() ?? [])].filter(({ isLook }) => !isLook);
    return concerns.some(({ reached }) => [...reached].some((client) => !isLibrary(client)));
  }
}

/** Whether it concerns proven clients of any other tenant. */
function concernsOthers({ isLook, waiting, reached: { tenants } }: Concern, tenant: string): boolean {
  if (!isLook) return tenants.size > (tenants.has(tenant) ? 1 : 0);
  return [...waiting].some((each) => isProven(each) && each.tenant !== tenant);
}
