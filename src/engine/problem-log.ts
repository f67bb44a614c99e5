import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { FileReport } from '../directory/report.ts';
import type { Mesh } from '../mesh.ts';
import type { Logger } from '../ops/logger.ts';

/** Which problems to log, and where their objects are. */
export interface ProblemLogOptions {
  readonly about: (problem: Problem) => boolean;
  /** `file:line` */
  readonly locate?: ((problem: Problem) => string | undefined) | undefined;
}

/** Problems logged per commit: one missing Service may break thousands of routes. */
const NAMED = 20;

/** Logs new problems of objects without a status to show them. */
export function logProblems(mesh: Mesh, log: Logger, { about, locate }: ProblemLogOptions): void {
  mesh.graph.follow(mesh.problems.byObject, (changes) => {
    const appeared: Problem[] = [];
    for (const { before = [], after = [] } of changes) {
      const known = new Set(before.map(idOf));
      appeared.push(...after.filter((problem) => about(problem) && !known.has(idOf(problem))));
    }
    for (const problem of appeared.slice(0, NAMED)) {
      const { object, field, reason, message } = problem;
      const fields = {
        place: locate?.(problem),
        object: printRef(object),
        field: field || undefined,
        reason,
        problem: message,
      };
      log.warn('Object has a problem', fields);
    }
    const more = appeared.length - NAMED;
    if (more > 0) log.warn('More objects have problems; see /debug/problems', { problems: more });
  });
}

/** Logs new problems in files; for a kind that is not read, only once. */
export function reportLog(log: Logger): (appeared: readonly FileReport[]) => void {
  const unreadKinds = new Set<string>();
  return (appeared) => {
    for (const { severity, file, line, object, field, message, unread } of appeared) {
      if (unread !== undefined && unreadKinds.has(unread)) continue;
      if (unread !== undefined && unreadKinds.size < MOST_KINDS) unreadKinds.add(unread);
      log[severity === 'error' ? 'error' : 'warn']('File has a problem', {
        place: line === undefined ? file : `${file}:${line}`,
        object: object && printRef(object),
        field: field || undefined,
        problem: message,
      });
    }
  };
}

/** Limits how many made-up kinds are remembered; there are far fewer real ones. */
const MOST_KINDS = 1_000;

function idOf({ field, reason, message }: Problem): string {
  return `${field}|${reason}|${message}`;
}
