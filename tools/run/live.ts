import { watch } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { partNames } from './bookshop.ts';
import type { ProxyState } from './fairlead.ts';
import { SavedFiles } from './saved-files.ts';
import { Answers, Screen } from './screen.ts';
import { type Stage, isSettled } from './stage.ts';
import { Visitor } from './visitor.ts';

export interface LiveOptions {
  readonly stage: Stage;
  /** Where the user edits files. */
  readonly directory: string;
  readonly out: NodeJS.WriteStream;
  readonly signal: AbortSignal;
}

/** Milliseconds between requests, between checks of the proxies, and between those checks after a file was saved. */
const REQUEST = 100;
const LOOK = 250;
const LOOK_CLOSELY = 10;
/** If no proxy is told of a change within this time, it affects none. Milliseconds. */
const UNCONCERNED = 1_500;

/** Sends requests, and shows which backend answers and what the proxies have acknowledged, until the signal fires. */
export async function showLive({ stage, directory, out, signal }: LiveOptions): Promise<void> {
  const visitor = new Visitor(stage.ports);
  const answers = new Answers(['storefront', ...partNames]);
  const screen = new Screen(out, { directory, ports: stage.ports });
  const saved = new SavedFiles();
  let wake = new AbortController();
  const watching = watch(directory, (_, file) => {
    if (saved.add(file, performance.now())) wake.abort();
  });

  const visit = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        const page = await visitor.page();
        answers.add('storefront', page.version);
        for (const name of partNames) answers.add(name, page.parts[name].version ?? `${page.parts[name].status}`);
      } catch (error) {
        answers.add('storefront', error instanceof Error ? error.message : String(error));
      }
      await pause(REQUEST, signal);
    }
  };

  const look = async (): Promise<void> => {
    let known = await stage.fairlead.proxies();
    while (!signal.aborted) {
      const states = await stage.fairlead.proxies();
      for (const complaint of stage.fairlead.complaints()) screen.note(complaint);
      const waited = saved.waited(performance.now());
      if (waited === undefined) known = states;
      else {
        const told = changedProxies(known, states);
        if (told.length > 0 && isSettled(states, Object.keys(stage.proxies))) {
          screen.note(`${saved.take()}: acknowledged by ${told.join(' and ')} ${waited.toFixed(0)} ms later`);
          known = states;
        } else if (waited > UNCONCERNED) {
          screen.note(`${saved.take()}: no proxy needs anything for that`);
        }
      }
      screen.show({ answers, states, problems: await stage.fairlead.problems() });
      wake = new AbortController();
      if (saved.waited(0) === undefined) await pause(LOOK, AbortSignal.any([signal, wake.signal]));
      else await pause(LOOK_CLOSELY, signal);
    }
  };

  try {
    await Promise.all([visit(), look()]);
  } catch (error) {
    // Programs that end break the connections to them.
    if (!signal.aborted) throw error;
  } finally {
    watching.close();
    visitor.leave();
    screen.end();
  }
}

function changedProxies(before: readonly ProxyState[], after: readonly ProxyState[]): string[] {
  const print = (state: ProxyState | undefined): string => JSON.stringify(state?.types.map(({ acked }) => acked));
  return after
    .filter((state) => print(state) !== print(before.find(({ name }) => name === state.name)))
    .map(({ name }) => name);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
