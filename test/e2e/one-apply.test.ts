import { withPeers } from '../peers/with-peers.ts';
import { PEERS, appliedTogether } from './one-apply.ts';

withPeers(PEERS, 'the objects of one kubectl apply', () => {
  appliedTogether(4);
});
