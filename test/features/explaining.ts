import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';

/** @param where the flags that name the source of objects. */
export async function explainAccess(where: readonly string[], ...args: readonly string[]) {
  let [out, err] = ['', ''];
  const code = await runCli(['explain', 'access', ...args, ...where], {
    program: () => Promise.resolve(createProgram()),
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env: {},
    signal: new AbortController().signal,
  });
  return { code, out, err };
}
