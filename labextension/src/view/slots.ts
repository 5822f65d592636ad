/** Texts that Python wrote, with what is shown in their slots; nothing here says anything. */

type Slots = Readonly<Record<string, string | number>>;

const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const NAMED: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\xa0': ' ' };

/** Fill a text as Python's `str.format` does: `{name}` is a slot, a doubled brace is a brace. */
export function fill(text: string, slots: Slots): string {
  return text.replace(/\{\{|\}\}|\{(\w+)\}/g, (found: string, name?: string) =>
    name === undefined ? found[0] : String(slots[name] ?? found)
  );
}

/** Fill the text for one thing, or that for another number of them. */
export function numbered(pair: readonly [string, string], number: number, slots: Slots = {}): string {
  return fill(pair[number === 1 ? 0 : 1], { number: grouped(number), ...slots });
}

/** Write a whole number with commas. */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Make a text of unknown origin safe to read: control characters become visible. */
export function clean(text: string): string {
  HIDDEN.lastIndex = 0;
  return HIDDEN.test(text) ? untabbed(text).replace(HIDDEN, escaped) : text;
}

/** Make each line of a text safe to read. */
export function cleanLines(text: string): string {
  return text.split('\n').map(clean).join('\n');
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
