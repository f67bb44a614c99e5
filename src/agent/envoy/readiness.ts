import type { Admin } from './admin.ts';

/** Whether Envoy can serve, as its own figures say. What was true once is not asked again. */
export class Readiness {
  readonly #admin: Admin;
  #configured = false;
  #started = false;

  constructor(admin: Admin) {
    this.#admin = admin;
  }

  /** Undefined: it can; or why not, as one line. */
  async problem(): Promise<string | undefined> {
    try {
      if (!this.#configured) {
        const waiting = unconfigured(await this.#figures(CONFIGURED));
        if (waiting !== undefined) return waiting;
        this.#configured = true;
      }
      if (!this.#started) {
        const stats = await this.#figures(STARTED);
        if (stats.get('server.state') !== 0) return 'Envoy is not live yet';
        if (stats.get('listener_manager.workers_started') !== 1)
          return 'Envoy waits for secrets or endpoints before it serves';
        this.#started = true;
      }
      return undefined;
    } catch {
      return 'Envoy does not answer yet';
    }
  }

  async #figures(filter: string): Promise<ReadonlyMap<string, number>> {
    return figures(await this.#admin.get(`/stats?usedonly&filter=${encodeURIComponent(filter)}`));
  }
}

const CONFIGURED = '^(cluster_manager\\.cds|listener_manager\\.lds)\\.(update_success|update_rejected)$';
const STARTED = '^(server\\.state|listener_manager\\.workers_started)$';

function unconfigured(stats: ReadonlyMap<string, number>): string | undefined {
  for (const [type, name] of [
    ['clusters', 'cluster_manager.cds'],
    ['listeners', 'listener_manager.lds'],
  ] as const) {
    if ((stats.get(`${name}.update_success`) ?? 0) > 0) continue;
    return (stats.get(`${name}.update_rejected`) ?? 0) > 0
      ? `Envoy has rejected the ${type} of the control plane`
      : `Envoy has no ${type} from the control plane yet`;
  }
  return undefined;
}

/** `name: value` on each line. */
function figures(text: string): ReadonlyMap<string, number> {
  return new Map(
    text.split('\n').flatMap((line) => {
      const at = line.lastIndexOf(': ');
      return at < 0 ? [] : [[line.slice(0, at), Number(line.slice(at + 2))] as const];
    }),
  );
}
