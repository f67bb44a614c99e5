import { printRef } from '../../api/object.ts';
import type { FileReport } from '../report.ts';

/** `file:line: kind/namespace/name: field: sentence`, without unknown parts. */
export function printReport({ file, line, object, field, message }: FileReport): string {
  const place = line === undefined ? file : `${file}:${line}`;
  return [place, ...(object === undefined ? [] : [printRef(object)]), ...(field === '' ? [] : [field]), message].join(
    ': ',
  );
}
