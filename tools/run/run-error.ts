/** Something that the person at the terminal can mend: the message is all there is to say. */
export class RunError extends Error {
  override readonly name = 'RunError';
}
