import { afterAll } from 'vitest';

/** Takes what is to be done when that ends for which something was made: a test, or all tests of a suite. */
export type OnEnd = (end: () => void | Promise<void>) => void;

/** For what the tests of a suite share. Called in the body of the suite. */
export function afterSuite(): OnEnd {
  const ends: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });
  return (end) => void ends.push(end);
}
