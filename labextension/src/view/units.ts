/** Numbers as people read them: the same words as `shardnb.views.units`. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const NAMED: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\xa0': ' ' };

/** Write a number of bytes in binary units: `64 KiB`, `1.0 MiB`. */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (unit < UNITS.length - 1 && Number(digits(value, unit)) >= 1024) {
    value /= 1024;
    unit += 1;
  }
  return `${digits(value, unit)} ${UNITS[unit]}`;
}

function digits(value: number, unit: number): string {
  const whole = unit === 0 || value >= 99.95 || (value >= 10 && Number.isInteger(value));
  return fixed(value, whole ? 0 : 1);
}

/** Write with so many decimals; a tie goes to the even digit, as in Python. */
function fixed(value: number, decimals: number): string {
  const scale = 10 ** decimals;
  const floor = Math.floor(value * scale);
  const tie = value * scale - floor === 0.5;
  return tie ? ((floor + (floor % 2)) / scale).toFixed(decimals) : value.toFixed(decimals);
}

/** Write a difference in bytes with its sign. */
export function change(bytes: number): string {
  return (bytes < 0 ? '-' : '+') + size(Math.abs(bytes));
}

/** Write seconds with three digits: `0.180 s`, `12.3 s`, `1.23 ms`. */
export function seconds(value: number): string {
  if (value >= 999.5) {
    return `${grouped(Math.round(value))} s`;
  }
  if (value >= 0.0995) {
    return `${three(value)} s`;
  }
  return value >= 0.0009995 ? `${three(value * 1e3)} ms` : `${three(value * 1e6)} us`;
}

function three(value: number): string {
  const decimals = value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fixed(value, decimals);
}

/** Write a whole number with commas. */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Write a number with its noun, in the plural where it is not one. */
export function count(number: number, noun: string): string {
  return `${grouped(number)} ${number === 1 ? noun : plural(noun)}`;
}

/** Give the plural of a noun. */
export function plural(noun: string): string {
  if (noun.endsWith('y')) {
    return `${noun.slice(0, -1)}ies`;
  }
  return /(s|x|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`;
}

/** Write a shape as people say it: `64 x 512`, `scalar`. */
export function dims(shape: readonly number[]): string {
  return shape.join(' x ') || 'scalar';
}

/** Write numbers briefly: as they are, as a range, or their ends with the count. */
export function numbers(values: readonly number[], limit = 8): string {
  const run = values.length > 2 && values.every((value, i) => value === values[0] + i);
  if (run) {
    return `${values[0]}-${values[values.length - 1]}`;
  }
  if (values.length <= limit) {
    return values.join(' ');
  }
  const last = values[values.length - 1];
  return `${values.slice(0, 3).join(' ')} ... ${last} (${values.length})`;
}

/** Make a text of unknown origin safe to read: control characters become visible. */
export function clean(text: string): string {
  HIDDEN.lastIndex = 0;
  return HIDDEN.test(text) ? untabbed(text).replace(HIDDEN, escaped) : text;
}

function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  const long = code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`;
  return NAMED[char] ?? (code < 0x100 ? `\\x${hex.padStart(2, '0')}` : long);
}

/** Replace tabs by spaces up to the next multiple of four columns. */
function untabbed(text: string): string {
  let column = 0;
  let result = '';
  for (const char of text) {
    const piece = char === '\t' ? ' '.repeat(4 - (column % 4)) : char;
    column = char === '\n' || char === '\r' ? 0 : column + piece.length;
    result += piece;
  }
  return result;
}
