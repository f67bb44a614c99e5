import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { createLogger, type Logger, type LoggerOptions } from './logger.ts';

function logged(options: Omit<LoggerOptions, 'stream'>, log: (logger: Logger) => void): string[] {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      lines.push(chunk.toString().replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, 'TIME'));
      done();
    },
  });
  log(createLogger({ ...options, stream }));
  return lines;
}

const broken = (): Error =>
  Object.assign(new Error('watch broke', { cause: new Error('socket closed') }), { code: 'ECONNRESET' });

test('text is one line of a constant message and its fields', () => {
  const lines = logged({ level: 'info', format: 'text' }, (log) => {
    log.info('Proxy connected', {
      node: 'sidecar~10.0.0.1~a.ns~ns.svc',
      message: 'two\nlines',
      count: 3,
      none: undefined,
    });
    log.warn('Watch ended', { err: broken() });
    log.debug('not shown');
  });
  expect(lines).toEqual([
    'TIME  info   Proxy connected  node=sidecar~10.0.0.1~a.ns~ns.svc  message="two\\nlines"  count=3\n',
    'TIME  warn   Watch ended  err="watch broke: socket closed"\n',
  ]);
});

test('text shows what would deceive a terminal', () => {
  const lines = logged({ level: 'info', format: 'text' }, (log) =>
    log.info('Said', { host: '\u202efoo\u009b1m\u2028' }),
  );
  expect(lines).toEqual(['TIME  info   Said  host="\\u202efoo\\u009b1m\\u2028"\n']);
});

test('an error without a code is a bug and shows its stack', () => {
  const [line] = logged({ level: 'error', format: 'text' }, (log) =>
    log.error('Transform failed', { err: new Error('oops') }),
  );
  expect(line).toMatch(/^TIME {2}error {2}Transform failed {2}err="oops"\n {4}at /);
});

test('JSON holds errors, and fields called like its own', () => {
  const [line] = logged({ level: 'debug', format: 'json' }, (log) =>
    log.debug('Watch ended', { err: broken(), level: 7, big: 1n }),
  );
  expect(JSON.parse(line!)).toEqual({
    time: 'TIME',
    level: 'debug',
    msg: 'Watch ended',
    level_: 7,
    big: '1',
    err: { message: 'watch broke: socket closed', code: 'ECONNRESET', stack: expect.stringContaining('watch broke') },
  });
});

test('of a long text the beginning is written, and nothing of a message deceives where it is part of a stack or of JSON', () => {
  const long = 'x'.repeat(1_000_000);
  const evil = 'oh\nTIME  error  Forged\u202e\u007f';
  for (const format of ['text', 'json'] as const) {
    const [line = ''] = logged({ level: 'info', format }, (log) => log.info('Said', { long, err: new Error(evil) }));
    expect(line.length).toBeLessThan(10_000);
    expect(line).toContain('(1000000 characters)');
    expect(line).not.toMatch(/^TIME {2}error/m);
    expect(line).not.toMatch(/[\u202e\u007f]/);
  }
});

test('a reader that goes away does not end the program', async () => {
  const stream = new Writable({
    write(_, __, done) {
      done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    },
  });
  const log = createLogger({ level: 'info', format: 'text', stream });
  log.info('nobody reads this');
  await new Promise((resolve) => stream.once('close', resolve));
  log.info('nor this');
  await new Promise(setImmediate);
});

test('what cannot be written does not throw', () => {
  const circle: Record<string, unknown> = {};
  circle['circle'] = circle;
  for (const format of ['text', 'json'] as const)
    expect(logged({ level: 'info', format }, (log) => log.info('Round', { circle }))[0]).toContain('circular');
});

test('the level can be set while the log is in use', () => {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const log = createLogger({ level: 'info', format: 'text', stream });
  const say = (): void => (['error', 'warn', 'info', 'debug'] as const).forEach((level) => log[level](`at ${level}`));
  const said = (): string[] => lines.splice(0).map((line) => /at (\w+)/.exec(line)![1]!);
  say();
  expect(said()).toEqual(['error', 'warn', 'info']);
  log.level = 'debug';
  say();
  expect([log.level, said()]).toEqual(['debug', ['error', 'warn', 'info', 'debug']]);
  log.level = 'error';
  say();
  expect(said()).toEqual(['error']);
});
