import { mkdir } from 'node:fs/promises';
import { run } from './process.ts';

/** Runs kubectl or helm against a cluster, with nothing of the user's own settings. Rejects with what it wrote if it fails. */
export function toolsWith(kubeconfig: string, home: string) {
  const env = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    HOME: home,
    HELM_CONFIG_HOME: home,
    HELM_CACHE_HOME: home,
    HELM_DATA_HOME: home,
  };
  return async (path: string, args: readonly string[], input?: string): Promise<string> => {
    await mkdir(home, { recursive: true });
    const { code, stdout, stderr } = await run(path, args, { env, ...(input !== undefined && { input }) });
    if (code !== 0) throw new Error(`${path} ${args.join(' ')}: exit code ${code}\n${stderr}${stdout}`);
    return stdout;
  };
}
