import { expect, test } from 'vitest';
import type { FileReport } from '../directory/report.ts';
import type { Logger } from '../ops/logger.ts';
import { reportLog } from './problem-log.ts';

test('of a kind that is not read the log speaks once, of files with mistakes each time', () => {
  const lines: unknown[] = [];
  const write = (level: string) => (_: string, fields?: { readonly place?: unknown }) => {
    lines.push(`${level} ${String(fields?.place)}`);
  };
  const log = { error: write('error'), warn: write('warn') } as unknown as Logger;
  const report = reportLog(log);
  const unread: FileReport = {
    severity: 'warning',
    file: 'a.yaml',
    field: 'kind',
    message: 'is not read',
    unread: 'security.istio.io/v1 AuthorizationPolicy',
  };
  const mistake: FileReport = { severity: 'error', file: 'a.yaml', line: 3, field: 'kind', message: 'no such kind' };
  report([unread, mistake, { ...unread, file: 'b.yaml' }]);
  report([
    { ...unread, file: 'c.yaml' },
    { ...unread, file: 'd.yaml', unread: 'telemetry.istio.io/v1 Telemetry' },
    mistake,
  ]);
  expect(lines).toEqual(['warn a.yaml', 'error a.yaml:3', 'warn d.yaml', 'error a.yaml:3']);
});
