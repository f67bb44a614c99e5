import type { Ports } from './ports.ts';
import type { ProxyState } from './fairlead.ts';

/** Which versions answered the latest requests. */
export class Answers {
  readonly #latest: ReadonlyMap<string, string[]>;

  constructor(names: readonly string[]) {
    this.#latest = new Map(names.map((name) => [name, []]));
  }

  add(name: string, answer: string): void {
    const latest = this.#latest.get(name);
    latest?.push(answer);
    if (latest !== undefined && latest.length > 100) latest.shift();
  }

  isEmpty(): boolean {
    return [...this.#latest.values()].every((latest) => latest.length === 0);
  }

  /** The answers of each service, oldest first. */
  entries(): Iterable<readonly [string, readonly string[]]> {
    return this.#latest;
  }
}

export interface View {
  readonly answers: Answers;
  readonly states: readonly ProxyState[];
  readonly problems: readonly string[];
}

const NOTES = 6;
/** Seconds between lines if there is no terminal. */
const SELDOM = 5;

/** Redraws continuously on a terminal; otherwise writes a line now and then. */
export class Screen {
  readonly #out: NodeJS.WriteStream;
  readonly #head: readonly string[];
  readonly #notes: string[] = [];
  #drawn = false;
  #written = -Infinity;

  constructor(out: NodeJS.WriteStream, { directory, ports }: { directory: string; ports: Ports }) {
    this.#out = out;
    const proxy = `curl -x http://127.0.0.1:${ports.proxy}`;
    this.#head = [
      `Fairlead runs the bookshop: http://localhost:${ports.gateway}/`,
      `Change a file in ${directory} and save it. Ctrl-C ends everything.`,
      '',
      `  curl http://localhost:${ports.gateway}/`.padEnd(72) + 'the shop, through the ingress gateway',
      `  ${proxy} http://reviews/`.padEnd(72) + "reviews, through the storefront's sidecar",
      `  ${proxy} http://reviews/ -H 'x-reader: beta'`.padEnd(72) + 'always the new version',
      `  curl http://localhost:${ports.health}/debug/syncz`.padEnd(72) + 'what each proxy has acknowledged',
      '',
    ];
  }

  show(view: View): void {
    if (view.answers.isEmpty()) return;
    if (this.#out.isTTY) this.#draw(view);
    else if (performance.now() - this.#written > SELDOM * 1000) this.#write(view);
  }

  /** Adds a line about something that happened. */
  note(text: string): void {
    this.#notes.push(`${new Date().toTimeString().slice(0, 8)}  ${text}`);
    if (!this.#out.isTTY) this.#out.write(`${text}\n`);
  }

  end(): void {
    if (this.#drawn) this.#out.write('\x1b[?25h');
  }

  #draw({ answers, states, problems }: View): void {
    const lines = [
      ...this.#head,
      'Who answers (latest 100 requests)',
      ...[...answers.entries()].map(
        ([name, latest]) => `  ${name.padEnd(12)}${shares(latest).padEnd(28)}${row(latest)}`,
      ),
      '',
      'What the proxies have acknowledged',
      ...states.map(stateLine),
      '',
      ...(problems.length === 0 ? [] : ['What is wrong with the objects', ...problems.map((line) => `  ${line}`), '']),
      ...this.#notes.slice(-NOTES).map((note) => `  ${note}`),
    ];
    const rows = lines.flatMap((line) => wrap(line, Math.max(this.#out.columns, 40))).slice(0, this.#out.rows - 1);
    const body = rows.map((line) => `${line}\x1b[K\n`);
    // Hides the cursor and clears the screen once.
    const start = this.#drawn ? '\x1b[H' : '\x1b[?25l\x1b[2J\x1b[H';
    this.#drawn = true;
    this.#out.write(`${start}${body.join('')}\x1b[J`);
  }

  #write({ answers, states, problems }: View): void {
    if (this.#written === -Infinity) this.#out.write(`${this.#head.join('\n')}\n`);
    this.#written = performance.now();
    const who = [...answers.entries()].map(([name, latest]) => `${name} ${shares(latest)}`);
    this.#out.write(`${[who.join('; '), ...states.map(stateLine), ...problems].join('\n')}\n`);
  }
}

function wrap(line: string, width: number): string[] {
  if (line.length <= width) return [line];
  return [line.slice(0, width), ...wrap(`    ${line.slice(width)}`, width)];
}

/** `v1 81 %  v2 19 %` */
function shares(latest: readonly string[]): string {
  return [...new Set(latest)]
    .sort()
    .map(
      (answer) =>
        `${answer} ${Math.round((100 * latest.filter((other) => other === answer).length) / latest.length)} %`,
    )
    .join('  ');
}

/** The latest answers, newest last: the digit of a version, or `!`. */
function row(latest: readonly string[]): string {
  return latest
    .slice(-40)
    .map((answer) => /^v(\d)$/.exec(answer)?.[1] ?? '!')
    .join('');
}

function stateLine({ name, types }: ProxyState): string {
  const states = types.map(({ name: type, acked, synced, rejected }) => {
    const state = rejected.length > 0 ? `REJECTED ${rejected.join(', ')}` : synced ? acked : `${acked || '-'} ...`;
    return `${type} ${state}`;
  });
  return `  ${name.padEnd(30)}${states.join('   ')}`;
}
