import type { ObjectReport, ProxyReport, StatusReport, TypeReport } from '../debug/status-report.ts';
import { quoteName, quoteWords } from '../api/quote.ts';
import { printable } from './printable.ts';
import { duration, table } from './text-table.ts';

/** Names in one cell; the others are counted. */
const NAMED = 5;

/** All proxies of these replicas, those with trouble first, and the objects that wait for some of them. */
export function printStatus(reports: readonly StatusReport[]): string {
  const proxies = reports
    .flatMap((report) => report.proxies.map((proxy) => ({ proxy, report, isFine: isFine(proxy) })))
    .sort((a, b) => Number(a.isFine) - Number(b.isFine) || compare(a.proxy.proxy, b.proxy.proxy))
    .map(({ proxy, report }) => [
      ...[quoteName(proxy.proxy), proxy.build, age(proxy.connectedSince, report), stateOf(proxy, report)],
      proxy.waitedForByCount === 0 ? '' : many(proxy.waitedForByCount, 'object'),
      ...(reports.length > 1 ? [report.replica] : []),
    ]);
  const titles = ['PROXY', 'BUILD', 'CONNECTED', 'STATE', 'WAITED FOR BY', ...(reports.length > 1 ? ['REPLICA'] : [])];
  const objects = joined(reports).map((object) => [...beginning(object), progressOf(object)]);
  return [
    proxies.length === 0 ? 'No proxies are connected.\n' : table(titles, proxies),
    '\n',
    objects.length === 0
      ? 'All objects are acknowledged by the proxies that they concern.\n'
      : table(['OBJECT', 'GENERATION', 'SINCE', 'STATE'], objects),
    unfollowedIn(reports),
    heldIn(reports),
  ].join('');
}

function unfollowedIn(reports: readonly StatusReport[]): string {
  const most = Math.max(0, ...reports.map(({ unfollowed = 0 }) => unfollowed));
  return most === 0 ? '' : `${many(most, 'more deleted object')} may not have reached all proxies.\n`;
}

/** Every replica holds what its own lists lost. */
function heldIn(reports: readonly StatusReport[]): string {
  const held = reports.flatMap((report) =>
    report.held.map(({ service, address, pod, since }) => [
      ...[service, address, pod, `${age(since, report)} ago`],
      ...(reports.length > 1 ? [report.replica] : []),
    ]),
  );
  const titles = ['HELD FOR', 'ADDRESS', 'POD', 'LOST', ...(reports.length > 1 ? ['REPLICA'] : [])];
  return held.length === 0 ? '' : `\n${table(titles, held)}`;
}

/** One proxy in detail, on every replica where it has a stream. */
export function printProxies(reports: readonly StatusReport[]): string {
  return reports.flatMap((report) => report.proxies.map((proxy) => printProxy(proxy, report))).join('\n');
}

function printProxy(proxy: ProxyReport, report: StatusReport): string {
  const facts = [
    ['Node', quoteName(proxy.node)],
    ['Build', proxy.build || 'unknown'],
    ['Connected', `for ${age(proxy.connectedSince, report)}, to ${report.replica}`],
    ['State', stateOf(proxy, report)],
  ];
  const types = Object.entries(proxy.types).map(([name, type]) => [
    name,
    typeState(type, report),
    String(type.owed),
    detailsOf(type),
  ]);
  const objects = report.objects.flatMap((object) => {
    const told = wordOf(object, proxy, report);
    return told === undefined ? [] : [[...beginning({ ...object, age: ageMs(object.since, report) }), told]];
  });
  return [
    `${quoteName(proxy.proxy)}\n`,
    ...facts.map(([name = '', value = '']) => `  ${name.padEnd(9)}  ${printable(value)}\n`),
    '\n',
    table(['TYPE', 'STATE', 'TO BE SENT', 'DETAILS'], types),
    '\n',
    objects.length === 0 ? 'No object waits for it.\n' : table(['OBJECT', 'GENERATION', 'SINCE', 'STATE'], objects),
  ].join('');
}

/** What an object has to do with one proxy, or undefined if it has nothing to do with it. */
function wordOf(object: ObjectReport, { proxy, stream }: ProxyReport, report: StatusReport): string | undefined {
  const rejection = object.rejections.find((each) => each.proxy === proxy);
  if (rejection !== undefined) return withForce(`rejected: ${printRejection(rejection)}`, object);
  const waiting = object.waiting.find((each) => each.stream === stream);
  return waiting && withForce(`not acknowledged for ${age(waiting.since, report)}`, object);
}

/** One object on several replicas. */
interface Joined extends ObjectReport {
  /** Since it was published; milliseconds. */
  readonly age: number;
}

function joined(reports: readonly StatusReport[]): readonly Joined[] {
  const found = new Map<string, Joined>();
  for (const report of reports)
    for (const object of report.objects) {
      const key = `${object.object} ${object.generation} ${object.isDeleted}`;
      const known = found.get(key);
      const here = { ...object, age: ageMs(object.since, report) };
      found.set(key, known === undefined ? here : join(known, here));
    }
  return [...found.values()].sort((a, b) => b.age - a.age || compare(a.object, b.object));
}

function join(a: Joined, b: Joined): Joined {
  const inForce = a.inForce ?? b.inForce;
  return {
    ...a,
    age: Math.max(a.age, b.age),
    state: b.state === 'rejected' ? b.state : a.state,
    ...(inForce !== undefined && { inForce }),
    waiting: [...a.waiting, ...b.waiting],
    waitingCount: a.waitingCount + b.waitingCount,
    rejections: [...a.rejections, ...b.rejections],
    rejectingCount: a.rejectingCount + b.rejectingCount,
  };
}

function beginning({ object, generation, isDeleted, age }: Joined): string[] {
  return [object, isDeleted ? 'deleted' : String(generation), `${duration(age)} ago`];
}

function progressOf(object: Joined): string {
  const { rejections, rejectingCount, waiting, waitingCount } = object;
  const [first] = rejections;
  const parts: string[] = [];
  if (rejectingCount > 0)
    parts.push(
      `rejected by ${named(rejections, rejectingCount)}${first === undefined ? '' : `: ${printRejection(first)}`}`,
    );
  if (waitingCount > 0) parts.push(`waits for ${named(waiting, waitingCount)}`);
  return withForce(parts.length === 0 ? 'on its way' : parts.join('; '), object);
}

function withForce(text: string, { inForce }: Pick<ObjectReport, 'inForce'>): string {
  if (inForce === undefined) return text;
  return `${text}; ${inForce === 'nothing' ? 'nothing of it' : `generation ${inForce}`} is in force`;
}

function printRejection({ typeUrl, name, message }: ObjectReport['rejections'][number]): string {
  return `${quoteName(typeUrl.slice(typeUrl.lastIndexOf('.') + 1))} ${quoteName(name)}: ${quoteWords(message)}`;
}

function named(proxies: readonly { readonly proxy: string }[], count: number): string {
  return list([...new Set(proxies.map(({ proxy }) => quoteName(proxy)))], count);
}

function list(all: readonly string[], count = all.length): string {
  const names = all.slice(0, NAMED);
  if (names.length === 0) return String(count);
  return `${names.join(', ')}${count > names.length ? ` and ${count - names.length} more` : ''}`;
}

function isFine(proxy: ProxyReport): boolean {
  return proxy.synced && rejects(proxy) === 0;
}

function rejects({ types }: ProxyReport): number {
  return Object.values(types).reduce((sum, { rejectedCount }) => sum + rejectedCount, 0);
}

function stateOf(proxy: ProxyReport, report: StatusReport): string {
  const count = rejects(proxy);
  const rejecting = count === 0 ? [] : [`REJECTS ${count}`];
  if (proxy.synced) return rejecting[0] ?? 'SYNCED';
  const behind = proxy.behindSince === undefined ? 'BEHIND' : `BEHIND ${age(proxy.behindSince, report)}`;
  return [...rejecting, behind].join(', ');
}

function typeState({ synced, rejectedCount, unansweredSince }: TypeReport, report: StatusReport): string {
  const rejecting = rejectedCount === 0 ? [] : [`REJECTS ${rejectedCount}`];
  if (synced) return rejecting[0] ?? 'SYNCED';
  const behind = unansweredSince === undefined ? 'BEHIND' : `NO ANSWER ${age(unansweredSince, report)}`;
  return [...rejecting, behind].join(', ');
}

function detailsOf({ rejected, rejectedCount, error, overdue }: TypeReport): string {
  return [
    ...(rejectedCount > 0 ? [`rejects ${list(rejected.map(quoteName), rejectedCount)}`] : []),
    ...(error === undefined ? [] : [quoteWords(error)]),
    ...(overdue.length > 0 ? [`long overdue: ${list(overdue)}`] : []),
  ].join('; ');
}

function age(since: string, report: StatusReport): string {
  return duration(ageMs(since, report));
}

function ageMs(since: string, { at }: StatusReport): number {
  return Math.max(0, Date.parse(at) - Date.parse(since));
}

function many(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
