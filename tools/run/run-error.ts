/** Something that the user can fix: the message says everything. */
export class RunError extends Error {
  override readonly name = 'RunError';
}
