import { isIP } from 'node:net';

/** A range of addresses. A single address is a range by itself. */
export interface Cidr {
  readonly address: string;
  readonly length: number;
}

/** Undefined if the text is neither an address nor a range. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const family = isIP(address);
  const longest = family === 4 ? 32 : 128;
  if (family === 0 || more.length > 0 || address.includes('%')) return undefined;
  if (bits === undefined) return { address, length: longest };
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > longest) return undefined;
  return { address, length: Number(bits) };
}

/** One text for ranges with the same addresses: `10.1.2.3/8` and `10.0.0.0/8` are equal. */
export function canonicalCidr(text: string): string {
  const cidr = parseCidr(text);
  if (cidr === undefined) return text;
  return printBlock(addressBytes(cidr.address), cidr.length);
}

/**
 * The range of 2^bits addresses that contains an address, or the first address of a range; undefined for other text.
 */
export function blockOf(text: string, bits: number): string | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined) return undefined;
  const bytes = addressBytes(cidr.address);
  return printBlock(bytes, Math.max(0, bytes.length * 8 - bits));
}

/**
 * The bits that all addresses of a range begin with. A range covers those of the same family whose bits begin with its
 * own.
 */
export function leadingBits({ address, length }: Cidr): string {
  const bits = addressBytes(address).map((byte) => byte.toString(2).padStart(8, '0'));
  return bits.join('').slice(0, length);
}

/** Whether an address is in a range. */
export function covers({ address: first, length }: Cidr, address: string): boolean {
  if (isIP(address) !== isIP(first)) return false;
  const [a, b] = [addressBytes(first), addressBytes(address)];
  return a.every((byte, i) => {
    const kept = Math.min(8, Math.max(0, length - i * 8));
    return ((byte ^ b[i]!) & (0xff00 >> kept)) === 0;
  });
}

/** The 4 or 16 bytes of an address. */
export function addressBytes(address: string): readonly number[] {
  return isIP(address) === 4 ? v4Bytes(address) : v6Bytes(address);
}

function printBlock(bytes: readonly number[], length: number): string {
  const masked = bytes.map((byte, i) => {
    const kept = Math.min(8, Math.max(0, length - i * 8));
    return byte & (0xff00 >> kept);
  });
  return `${addressOfBytes(masked)}/${length}`;
}

/** The address with these bytes, not shortened. */
export function addressOfBytes(bytes: ArrayLike<number> & Iterable<number>): string {
  if (bytes.length === 4) return [...bytes].join('.');
  return Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16)).join(':');
}

function v4Bytes(address: string): number[] {
  return address.split('.').map(Number);
}

function v6Bytes(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const front = groupBytes(head);
  if (tail === undefined) return front;
  const back = groupBytes(tail);
  return [...front, ...new Array<number>(16 - front.length - back.length).fill(0), ...back];
}

/** Two bytes per group; the last group may be written as an IPv4 address. */
function groupBytes(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return v4Bytes(group);
    const value = parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
