import type { Source } from '../../model/provenance.ts';
import type { MessageOf } from './proto.ts';

/** Throws if a message has no encoding. */
export type CheckEncoding = <Name extends string>(type: Name, message: MessageOf<Name>) => void;

/** What changes a finished message where it stands. Made for one message. */
export interface Patching {
  /** Never throws. A message that nothing changes is the same object; one that is changed passes the check. */
  apply<Name extends string>(type: Name, message: MessageOf<Name>, check: CheckEncoding): MessageOf<Name>;
  /** Places of the patches that changed it. */
  readonly sources: readonly Source[];
}
