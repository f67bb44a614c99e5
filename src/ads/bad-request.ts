/** A request that ends its stream: malformed, or over a limit. */
export class BadRequest extends Error {
  readonly tooMuch: boolean;

  constructor(message: string, tooMuch = false) {
    super(message);
    this.tooMuch = tooMuch;
  }
}
