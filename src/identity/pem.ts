/** A block of a PEM file, e.g. with the label `CERTIFICATE`. */
export interface PemBlock {
  readonly label: string;
  readonly der: Buffer;
}

const BEGIN = '-----BEGIN ';
const DASHES = '-----';

/**
 * The blocks of a PEM file (RFC 7468), or `undefined` if one is malformed: also if it has headers, which only encrypted
 * keys have. Text between blocks is ignored. Takes time linear in the size of the text.
 */
export function readPem(text: string): readonly PemBlock[] | undefined {
  const blocks: PemBlock[] = [];
  for (let at = text.indexOf(BEGIN); at !== -1; at = text.indexOf(BEGIN, at)) {
    const labelAt = at + BEGIN.length;
    const labelEnd = text.indexOf(DASHES, labelAt);
    if (labelEnd === -1) return undefined;
    const label = text.slice(labelAt, labelEnd);
    const end = `${DASHES}END ${label}${DASHES}`;
    const endAt = text.indexOf(end, labelEnd);
    if (!/^[A-Z0-9 ]{1,40}$/.test(label) || endAt === -1) return undefined;
    const der = readBase64(text.slice(labelEnd + DASHES.length, endAt));
    if (der === undefined) return undefined;
    blocks.push({ label, der });
    at = endAt + end.length;
  }
  return blocks;
}

/** Ends with a line break, so that blocks can be joined. */
export function writePem(label: string, der: Uint8Array): string {
  const lines = Buffer.from(der.buffer, der.byteOffset, der.byteLength)
    .toString('base64')
    .match(/.{1,64}/g);
  return [`${BEGIN}${label}${DASHES}`, ...(lines ?? []), `${DASHES}END ${label}${DASHES}`, ''].join('\n');
}

function readBase64(text: string): Buffer | undefined {
  const digits = text.replace(/\s+/g, '');
  const valid = digits !== '' && digits.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(digits);
  return valid ? Buffer.from(digits, 'base64') : undefined;
}
