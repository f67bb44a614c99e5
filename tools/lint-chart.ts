/** Runs `helm lint` on the chart if there is a helm; otherwise says that there is none. */
import { join } from 'node:path';
import { peer, peersAreRequired } from '../test/peers/peer.ts';
import { run } from '../test/peers/process.ts';

const helm = peer('helm');
if ('missing' in helm) {
  console.log(`chart: ${helm.missing}`);
  if (peersAreRequired()) process.exitCode = 1;
} else {
  const chart = join(import.meta.dirname, '../charts/fairlead');
  const { code, stdout, stderr } = await run(helm.path, ['lint', '--strict', chart]);
  console.log(`${stdout}${stderr}`.trim());
  process.exitCode = code;
}
