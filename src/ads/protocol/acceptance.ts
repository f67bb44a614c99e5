import { itemsOf, type Sent } from './sent.ts';
import { Batch, type Served } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from '../store/world.ts';

/** A response was accepted. That says nothing about bytes that this client has rejected before. */
export function accept(subscription: Subscription, sent: Sent, view: WorldView): void {
  const { ledger, type, wholeState } = subscription;
  const { rejections } = ledger;
  if (sent.trial !== undefined) subscription.trial?.answered(sent.trial);
  subscription.acceptWhole();
  if (wholeState) ledger.certainOfAll();
  if (ledger.partial !== undefined) {
    for (const { name } of itemsOf(sent)) ledger.certain(name);
    for (const name of sent.removed) ledger.certain(name);
  }
  if (rejections === undefined) return;
  for (const item of itemsOf(sent)) {
    const { name, version } = item;
    if (sent.tolerated.has(name) || !rejections.has(name)) continue;
    const present = view.resolve(type.typeUrl, name);
    if (rejections.suspects(name, version)) {
      // It was taken back needlessly.
      ledger.ask(name, rejections.held(name));
      rejections.forget(name);
    } else {
      const target = ledger.target(name, present) ?? subscription.absent(name);
      rejections.accepted(name, item, sent.nonce, target?.version === version);
    }
  }
  // The client now knows that these are gone.
  const gone = wholeState ? [...rejections.names.keys()] : sent.removed;
  for (const name of gone) {
    if (view.resolve(type.typeUrl, name) === undefined && ledger.kept?.has(name) !== true) rejections.forget(name);
  }
}

/** What the acceptance of a response says about its resources for others: nothing about those rejected before. */
export function provenBy({ ledger }: Subscription, sent: Sent): readonly Batch[] {
  const { rejections } = ledger;
  const { batches, tolerated } = sent;
  if (rejections === undefined && tolerated.size === 0) return batches;
  const isProven = ({ name, version }: Served): boolean =>
    !tolerated.has(name) && rejections?.rejected(name, version) !== true;
  return [new Batch([...itemsOf(sent)].filter(isProven))];
}
