import { isObject } from './json.ts';

/** A rule holds for values of another type: that is a different error. */
type Holds = (self: unknown) => boolean;

const whenText =
  (holds: (self: string) => boolean): Holds =>
  (self) =>
    typeof self !== 'string' || holds(self);

const whenObject =
  (holds: (self: Readonly<Record<string, unknown>>) => boolean): Holds =>
  (self) =>
    !isObject(self) || holds(self);

const whenList =
  (holds: (self: readonly unknown[]) => boolean): Holds =>
  (self) =>
    !Array.isArray(self) || holds(self);

/** The equivalent of each CEL rule in the schemas, except those that `x-exclusive` covers. */
const rules: Readonly<Record<string, Holds>> = {
  "duration(self) >= duration('1ms')": whenText((self) => {
    // Longer ones exceed maxLength, and are not worth the time.
    const nanoseconds = self.length > 64 ? Infinity : parseGoDuration(self);
    return nanoseconds !== undefined && nanoseconds >= 1e6;
  }),
  "!self.contains('*')": whenText((self) => !self.includes('*')),
  "self != '*'": whenText((self) => self !== '*'),
  "self.all(key, key != '' && !key.contains('*'))": whenObject((self) =>
    Object.keys(self).every((key) => key !== '' && !key.includes('*')),
  ),
  "self.all(name, name.size() <= 63 && name.matches('^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$'))": whenObject((self) =>
    Object.keys(self).every((name) => name.length <= 63 && /^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$/.test(name)),
  ),
  'has(self.address) || has(self.network)': whenObject(
    (self) => self['address'] !== undefined || self['network'] !== undefined,
  ),
  "!has(self.ports) || !has(self.address) || !self.address.startsWith('unix://')": whenObject(
    (self) => self['ports'] === undefined || !isUnix(self['address']),
  ),
  "!self.startsWith('unix://') || self.matches('^unix://[/@].*[^/]$')": whenText(
    (self) => !isUnix(self) || self.length > 256 || /^unix:\/\/[/@][^\n]*[^/]$/.test(self),
  ),
  "!has(self.addresses) || !has(self.resolution) || self.resolution in ['NONE', 'STATIC'] || !self.addresses.exists(address, address.contains('/'))":
    whenObject(
      ({ addresses, resolution = 'NONE' }) =>
        resolution === 'NONE' || resolution === 'STATIC' || !texts(addresses).some((address) => address.includes('/')),
    ),
  "(has(self.resolution) && self.resolution != 'NONE') || !has(self.endpoints) || self.endpoints.size() == 0":
    whenObject(({ endpoints, resolution = 'NONE' }) => resolution !== 'NONE' || listSize(endpoints) === 0),
  "!has(self.resolution) || self.resolution != 'DNS_ROUND_ROBIN' || !has(self.endpoints) || self.endpoints.size() <= 1":
    whenObject(({ endpoints, resolution }) => resolution !== 'DNS_ROUND_ROBIN' || listSize(endpoints) <= 1),
  'self.all(port, self.exists_one(other, other.number == port.number))': whenList((self) => {
    const numbers = self.map((port) => (isObject(port) ? port['number'] : undefined)).filter((n) => n !== undefined);
    return new Set(numbers).size === numbers.length;
  }),
  '!has(self.portLevelMtls) || (has(self.selector) && has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0)':
    whenObject(
      ({ portLevelMtls, selector }) =>
        portLevelMtls === undefined ||
        (isObject(selector) && isObject(selector['matchLabels']) && Object.keys(selector['matchLabels']).length > 0),
    ),
  "self.all(port, port.matches('^[0-9]{1,5}$') && 0 < int(port) && int(port) <= 65535)": whenObject((self) =>
    Object.keys(self).every((port) => /^[0-9]{1,5}$/.test(port) && Number(port) > 0 && Number(port) <= 65535),
  ),
  '!(has(self.serviceAccounts) || has(self.notServiceAccounts)) || !(has(self.principals) || has(self.notPrincipals) || has(self.namespaces) || has(self.notNamespaces))':
    whenObject((self) => {
      const has = (name: string): boolean => self[name] !== undefined;
      return (
        !(has('serviceAccounts') || has('notServiceAccounts')) ||
        !(has('principals') || has('notPrincipals') || has('namespaces') || has('notNamespaces'))
      );
    }),
  "self.startsWith('http://') || self.startsWith('https://')": whenText((self) => /^https?:\/\//.test(self)),
};

/** Whether a schema rule holds. Throws if the rule has no equivalent here. */
export function ruleHolds(rule: string, self: unknown): boolean {
  const holds = rules[rule];
  if (holds === undefined) throw new Error(`no equivalent of the rule ${rule}`);
  return holds(self);
}

const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};
const COMPONENT = /^(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/;
/** Go counts nanoseconds in an int64. */
const MAX_NANOSECONDS = 2 ** 63;

/** Nanoseconds as Go's time.ParseDuration reads them; undefined for anything else. */
function parseGoDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  let rest = text.replace(/^[+-]/, '');
  let total = 0;
  do {
    const [component, number = '', unit = ''] = COMPONENT.exec(rest) ?? [];
    if (component === undefined) return undefined;
    total += Number(number) * UNITS[unit]!;
    rest = rest.slice(component.length);
  } while (rest !== '');
  return total < MAX_NANOSECONDS ? sign * total : undefined;
}

function isUnix(address: unknown): boolean {
  return typeof address === 'string' && address.startsWith('unix://');
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function listSize(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}
