/** Runs `helm lint` on the charts if there is a helm; otherwise says that there is none. */
import { join } from 'node:path';
import { peer, peersAreRequired } from '../test/peers/peer.ts';
import { run } from '../test/peers/process.ts';

const helm = peer('helm');
if ('missing' in helm) {
  console.log(`charts: ${helm.missing}`);
  if (peersAreRequired()) process.exitCode = 1;
} else {
  const charts = ['fairlead', 'fairlead-gateway'].map((name) => join(import.meta.dirname, '../charts', name));
  const { code, stdout, stderr } = await run(helm.path, [
    'lint',
    '--strict',
    '--set',
    'global.hub=registry.example.com',
    ...charts,
  ]);
  console.log(`${stdout}${stderr}`.trim());
  process.exitCode = code;
}
