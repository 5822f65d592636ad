import { describe, expect, it } from 'vitest';

import { clean, fill, numbered } from '../src/view/slots';

describe('a text with slots', () => {
  it.each([
    ['{a} of {b}', { a: 1, b: 'x' }, '1 of x'],
    ['{{a}} is {a}', { a: 'x' }, '{a} is x'],
    ['{unknown} stays', {}, '{unknown} stays'],
    // What is filled in is not read again.
    ['{a}', { a: '{b}', b: 'x' }, '{b}']
  ])('%s with %j is %s', (text, slots, filled) => {
    expect(fill(text, slots as Record<string, string>)).toBe(filled);
  });

  it('has a form for one and a form for more', () => {
    const pair = ['{number} line', '{number} lines'] as const;
    expect([0, 1, 5000].map(number => numbered(pair, number))).toEqual([
      '0 lines',
      '1 line',
      '5,000 lines'
    ]);
  });
});

describe('a text of unknown origin', () => {
  it('shows what could not be seen', () => {
    expect(clean('a\x1b[31mb\nc\u202e')).toBe('a\\x1b[31mb\\nc\\u202e');
    expect(clean('\tx')).toBe('    x');
  });
});
