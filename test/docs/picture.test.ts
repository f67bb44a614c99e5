import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { lastFrame } from '../../tools/run/frame.ts';
import { USUAL_BASE, portsFrom } from '../../tools/run/ports.ts';
import { Answers, Screen } from '../../tools/run/screen.ts';

const picture = readFileSync(new URL('../../docs/images/make-run.svg', import.meta.url), 'utf8');

test('the picture of the README has the lines that the screen of make run has now, and says when it was recorded', () => {
  let written = '';
  const out = { isTTY: true, columns: 118, rows: 40, write: (text: string) => (written += text) };
  const screen = new Screen(out as unknown as NodeJS.WriteStream, {
    directory: 'examples/bookshop',
    ports: portsFrom(USUAL_BASE),
  });
  const answers = new Answers(['reviews']);
  answers.add('reviews', 'v1');
  screen.show({ answers, states: [], problems: [] });
  // The answers differ each time.
  const lines = lastFrame(written).filter((line) => line !== '' && !line.startsWith('  reviews '));
  expect(lines.length).toBeGreaterThan(6);
  const drawn = picture.replaceAll('&amp;', '&').replaceAll('&lt;', '<').replaceAll('&gt;', '>');
  for (const line of lines) expect(drawn).toContain(`>${line.trim()}</text>`);
  expect(drawn).toMatch(/make run, recorded \d{4}-\d\d-\d\d</);
});
