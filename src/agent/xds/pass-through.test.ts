import { EventEmitter } from 'node:events';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { createAgentLog } from '../log.ts';
import { NotDialed } from './dial.ts';
import { PassThrough, STATE_OF_THE_WORLD } from './pass-through.ts';

test('why clients cannot be connected is logged once, however often they try', () => {
  const lines: string[] = [];
  let missing = 'there is no token';
  const passThrough = new PassThrough({
    method: STATE_OF_THE_WORLD,
    to: 'the control plane',
    dial() {
      throw new NotDialed(missing);
    },
    log: createAgentLog({ level: 'warn', format: 'json' }, (line) => lines.push(line)),
  });
  const told: unknown[] = [];
  const attempt = (): void => {
    const stream = new EventEmitter().on('error', ({ details }: { readonly details: string }) => told.push(details));
    passThrough.serve(stream as ServerDuplexStream<Buffer, Buffer>);
  };
  for (let i = 0; i < 20; i++) attempt();
  expect(lines).toHaveLength(1);
  missing = 'there is no root';
  attempt();
  expect(lines).toHaveLength(2);
  expect(told).toHaveLength(21);
});
