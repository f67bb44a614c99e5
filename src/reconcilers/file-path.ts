import { quote } from '../api/quote.ts';
import { readFilePath } from '../model/file-path.ts';
import type { Field } from './field.ts';

/** The one spelling of a path on the disks of proxies; empty if there is none that can be read. */
export function filePath(field: Field): string {
  const text = field.string();
  if (text === '') return '';
  const read = readFilePath(text);
  if ('path' in read) return read.path;
  field.invalid(`${quote(text)} ${read.problem}`);
  return '';
}
