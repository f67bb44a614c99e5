import type { Source } from '../../model/provenance.ts';
import type { MessageOf } from './proto.ts';

/** What changes a finished message where it stands. Made for one message, and told how that ended. */
export interface Patching {
  /** Never throws. A message that nothing changes is the same object. */
  apply<Name extends string>(type: Name, message: MessageOf<Name>): MessageOf<Name>;
  /** The patched message has no encoding: it is served as it was. */
  fail(error: unknown): void;
  /** Places of the patches that changed it. */
  readonly sources: readonly Source[];
}
