import protobuf from 'protobufjs';

/** `validate.FieldRules`, as decoded from the options of a field. */
export interface FieldRules {
  readonly message?: { readonly required?: boolean; readonly skip?: boolean };
  readonly any?: { readonly required?: boolean };
  readonly duration?: Bounds<Duration> & { readonly required?: boolean };
  readonly repeated?: {
    readonly minItems?: number;
    readonly maxItems?: number;
    readonly unique?: boolean;
    readonly items?: FieldRules;
  };
  readonly map?: { readonly minPairs?: number; readonly keys?: FieldRules; readonly values?: FieldRules };
  readonly enum?: { readonly definedOnly?: boolean; readonly notIn?: readonly number[] };
  readonly bool?: { readonly const?: boolean };
  readonly string?: StringRules;
  readonly bytes?: { readonly minLen?: number; readonly maxLen?: number };
  readonly double?: Bounds<number>;
  readonly float?: Bounds<number>;
  readonly int32?: Bounds<number>;
  readonly int64?: Bounds<number>;
  readonly uint32?: Bounds<number>;
  readonly uint64?: Bounds<number>;
}

interface StringRules {
  readonly minLen?: number;
  readonly maxLen?: number;
  readonly maxBytes?: number;
  readonly pattern?: string;
  readonly prefix?: string;
  readonly suffix?: string;
  readonly in?: readonly string[];
  readonly wellKnownRegex?: string;
  readonly strict?: boolean;
  readonly ignoreEmpty?: boolean;
}

interface Bounds<T> {
  readonly gt?: T;
  readonly gte?: T;
  readonly lt?: T;
  readonly lte?: T;
  readonly ignoreEmpty?: boolean;
}

interface Duration {
  readonly seconds?: number | protobuf.Long;
  readonly nanos?: number;
}

/** The kinds of rules that `checkValue` knows; a set that brings another one must not pass unseen. */
const KNOWN = new Set(
  'message any duration repeated map enum bool string bytes double float int32 int64 uint32 uint64'.split(' '),
);

export function ignoresEmpty(rules: FieldRules): boolean {
  return [rules.string, rules.uint32, rules.uint64, rules.int32, rules.double].some((rule) => rule?.ignoreEmpty);
}

/** What is wrong with the value of a field, a list and a map taken whole; messages in it are not entered. */
export function checkValue(rules: FieldRules, value: unknown, field: protobuf.Field): string[] {
  const unknown = Object.keys(rules).find((kind) => !KNOWN.has(kind));
  if (unknown) throw new Error(`${field.fullName} has rules of a kind that is not known: ${unknown}`);
  return [
    ...(rules.string ? checkString(rules.string, value as string) : []),
    ...(rules.bytes ? checkLength(rules.bytes, (value as Uint8Array).length, 'bytes') : []),
    ...(rules.bool?.const !== undefined && value !== rules.bool.const ? [`must be ${rules.bool.const}`] : []),
    ...(rules.enum ? checkEnum(rules.enum, value as number, field.resolvedType) : []),
    ...(rules.duration ? checkBounds(durationBounds(rules.duration), nanosOf(value as Duration)) : []),
    ...(rules.repeated ? checkList(rules.repeated, value as readonly unknown[], field) : []),
    ...(rules.map ? checkMap(rules.map, value as Readonly<Record<string, unknown>>, field) : []),
    ...[rules.double, rules.float, rules.int32, rules.int64, rules.uint32, rules.uint64]
      .filter((bounds) => bounds !== undefined)
      .flatMap((bounds) => checkBounds(bounds, Number(value))),
  ];
}

function checkString(rules: StringRules, value: string): string[] {
  const wellKnown = rules.wellKnownRegex && wellKnownRegex(rules.wellKnownRegex, rules.strict ?? true);
  const bytes = Buffer.byteLength(value);
  return [
    ...checkLength(rules, [...value].length, 'characters'),
    ...(rules.maxBytes !== undefined && bytes > rules.maxBytes
      ? [`has ${bytes} bytes, at most ${rules.maxBytes}`]
      : []),
    ...(rules.pattern !== undefined && !new RegExp(rules.pattern, 'u').test(value)
      ? [`must match ${rules.pattern}`]
      : []),
    ...(rules.prefix !== undefined && !value.startsWith(rules.prefix) ? [`must start with ${rules.prefix}`] : []),
    ...(rules.suffix !== undefined && !value.endsWith(rules.suffix) ? [`must end with ${rules.suffix}`] : []),
    ...(rules.in && !rules.in.includes(value) ? [`must be one of ${rules.in.join(', ')}`] : []),
    ...(wellKnown && !wellKnown.test(value) ? [`is not a valid ${rules.wellKnownRegex}`] : []),
  ];
}

function wellKnownRegex(name: string, strict: boolean): RegExp {
  switch (name) {
    case 'HTTP_HEADER_NAME':
      // Names that must not be empty say so by minLen.
      return strict ? /^:?[0-9a-zA-Z!#$%&'*+\-.^_|~`]+$/ : /^[^\0\n\r]*$/;
    case 'HTTP_HEADER_VALUE':
      return strict ? /^[^\0-\x08\x0a-\x1f\x7f]*$/ : /^[^\0\n\r]*$/;
    default:
      throw new Error(`not a well-known expression: ${name}`);
  }
}

function checkLength(rules: { minLen?: number; maxLen?: number }, length: number, unit: string): string[] {
  if (length < (rules.minLen ?? 0)) return [`has ${length} ${unit}, at least ${rules.minLen}`];
  return length > (rules.maxLen ?? Infinity) ? [`has ${length} ${unit}, at most ${rules.maxLen}`] : [];
}

function checkEnum(rules: NonNullable<FieldRules['enum']>, value: number, type: unknown): string[] {
  const defined = type instanceof protobuf.Enum && type.valuesById[value] !== undefined;
  if (rules.definedOnly && !defined) return [`${value} is not defined`];
  return rules.notIn?.includes(value) ? [`must not be ${value}`] : [];
}

function checkList(
  rules: NonNullable<FieldRules['repeated']>,
  list: readonly unknown[],
  field: protobuf.Field,
): string[] {
  const found: string[] = [];
  if (list.length < (rules.minItems ?? 0)) found.push(`has ${list.length} items, at least ${rules.minItems}`);
  if (list.length > (rules.maxItems ?? Infinity)) found.push(`has ${list.length} items, at most ${rules.maxItems}`);
  if (rules.unique && new Set(list).size < list.length) found.push('has an item twice');
  const { items } = rules;
  if (items) found.push(...list.flatMap((item, index) => checkValue(items, item, field).map((e) => `[${index}] ${e}`)));
  return found;
}

function checkMap(
  rules: NonNullable<FieldRules['map']>,
  map: Readonly<Record<string, unknown>>,
  field: protobuf.Field,
): string[] {
  const entries = Object.entries(map);
  const found: string[] = [];
  if (entries.length < (rules.minPairs ?? 0)) found.push(`has ${entries.length} entries, at least ${rules.minPairs}`);
  for (const [key, value] of entries) {
    const errors = [...checkValue(rules.keys ?? {}, key, field), ...checkValue(rules.values ?? {}, value, field)];
    found.push(...errors.map((error) => `[${key}] ${error}`));
  }
  return found;
}

function checkBounds(bounds: Bounds<number>, value: number): string[] {
  const { gt = -Infinity, gte = -Infinity, lt = Infinity, lte = Infinity } = bounds;
  const text = Object.entries({ gt: '>', gte: '>=', lt: '<', lte: '<=' })
    .map(([name, sign]) => [sign, bounds[name as keyof Bounds<number>]])
    .filter(([, bound]) => bound !== undefined)
    .map((parts) => parts.join(' '));
  const inside = value > gt && value >= gte && value < lt && value <= lte;
  return inside || Number.isNaN(value) ? [] : [`is ${value}, must be ${text.join(' and ')}`];
}

function durationBounds({ gt, gte, lt, lte }: Bounds<Duration>): Bounds<number> {
  return {
    ...(gt && { gt: nanosOf(gt) }),
    ...(gte && { gte: nanosOf(gte) }),
    ...(lt && { lt: nanosOf(lt) }),
    ...(lte && { lte: nanosOf(lte) }),
  };
}

function nanosOf(duration: Duration): number {
  return Number(duration.seconds ?? 0) * 1e9 + (duration.nanos ?? 0);
}
