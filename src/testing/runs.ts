/**
 * How many runs of a property there are now, of those that its test asks for: a quarter in `make test`, which repeats
 * the same ones each time; all of them in `make properties`, with another seed each time. PROPERTY_SHARE is the factor.
 */
export function runs(all: number): number {
  return Math.max(1, Math.ceil(all * Number(process.env['PROPERTY_SHARE'] ?? 0.25)));
}
