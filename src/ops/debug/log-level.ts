import type { LogLevel } from '../../config/settings.ts';
import type { Route } from '../http-server.ts';
import { type LevelledLogger, logLevels } from '../logger.ts';
import { loopbackOnly, refusal } from './local.ts';

/** `/debug/loglevel`: a GET shows the level of the log, and a POST with `level=` sets it until the process ends. */
export function logLevelRoutes(log: Pick<LevelledLogger, 'level'>): { readonly show: Route; readonly set: Route } {
  const show: Route = () => ({ type: 'text/plain', body: `${log.level}\n` });
  const set: Route = ({ query, origin }) => {
    // Any page that somebody opens beside a port-forward could send this; a browser says that it comes from a page.
    if (origin !== undefined) return refusal(403, 'the log level is not set by pages in a browser');
    const level = query.get('level');
    if (!isLevel(level)) return refusal(400, `level must be ${logLevels.join(' or ')}`);
    log.level = level;
    return { type: 'text/plain', body: `${level}\n` };
  };
  return { show: loopbackOnly(show), set: loopbackOnly(set) };
}

function isLevel(text: string | null): text is LogLevel {
  return logLevels.some((level) => level === text);
}
