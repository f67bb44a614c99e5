/** What a terminal shows, one line after the other. */
export type Frame = readonly string[];

/** Pixels: of a character, of a line, around the text, and of the bar above it. */
const [CHARACTER, LINE, MARGIN, BAR] = [8.4, 19, 18, 30];

/** What is left on a terminal after everything that a `Screen` wrote. */
export function lastFrame(written: string): Frame {
  const frame = written.split('\x1b[H').at(-1)!;
  const lines = frame.replaceAll(/\x1b\[\??[0-9]*[A-Za-z]/g, '').split('\n');
  return lines
    .map((line) => line.trimEnd())
    .join('\n')
    .trimEnd()
    .split('\n');
}

/** An SVG of a terminal with these lines. @param date of the recording, for its title bar. */
export function drawFrame(lines: Frame, date: string): string {
  const width = Math.ceil(2 * MARGIN + CHARACTER * Math.max(...lines.map((line) => line.length)));
  const height = BAR + 2 * MARGIN + LINE * lines.length;
  const text = lines.flatMap((line, i) => (line === '' ? [] : [drawLine(line, BAR + MARGIN + LINE * (i + 0.75))]));
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="The screen of make run">`,
    '<style>text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d6deeb; white-space: pre }',
    '.head { fill: #7fdbca; font-weight: bold } .note { fill: #addb67 } .bar { fill: #8b98a9 }</style>',
    `<rect width="${width}" height="${height}" rx="8" fill="#0b1724"/>`,
    ...['#ff5f57', '#febc2e', '#28c840'].map((fill, i) => `<circle cx="${18 + 18 * i}" cy="16" r="5" fill="${fill}"/>`),
    `<text class="bar" x="${width - MARGIN}" y="21" text-anchor="end">make run, recorded ${date}</text>`,
    ...text,
    '</svg>',
  ].join('\n')}\n`;
}

function drawLine(line: string, y: number): string {
  const style = /^\S/.test(line) ? ' class="head"' : /^ {2}\d\d:\d\d:\d\d /.test(line) ? ' class="note"' : '';
  const length = (CHARACTER * line.trimStart().length).toFixed(1);
  const x = MARGIN + CHARACTER * (line.length - line.trimStart().length);
  // Fonts differ in width; columns must not.
  return `<text${style} x="${x.toFixed(1)}" y="${y}" textLength="${length}" lengthAdjust="spacingAndGlyphs">${escape(line.trim())}</text>`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
