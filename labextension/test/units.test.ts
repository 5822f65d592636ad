import { describe, expect, it } from 'vitest';

import { change, clean, count, dims, numbers, seconds, size } from '../src/view/units';

describe('units', () => {
  it.each([
    [0, '0 B'],
    [65536, '64 KiB'],
    [1 << 20, '1.0 MiB'],
    [1114112, '1.1 MiB'],
    [2304, '2.2 KiB'], // a tie goes to the even digit, as Python writes it
    [1048575, '1.0 MiB']
  ])('write %d bytes as %s', (bytes, text) => expect(size(bytes)).toBe(text));

  it('write a change with its sign', () => {
    expect([change(131072), change(-512), change(0)]).toEqual(['+128 KiB', '-512 B', '+0 B']);
  });

  it.each([
    [0.1804, '0.180 s'],
    [12.345, '12.3 s'],
    [0.00123, '1.23 ms'],
    [4.56e-6, '4.56 us'],
    [1234, '1,234 s']
  ])('write %d seconds as %s', (value, text) => expect(seconds(value)).toBe(text));

  it('count with the plural', () => {
    expect(count(1, 'collective')).toBe('1 collective');
    expect(count(5000, 'collective')).toBe('5,000 collectives');
    expect(count(2, 'copy')).toBe('2 copies');
  });

  it('write shapes and numbers briefly', () => {
    expect(dims([64, 512])).toBe('64 x 512');
    expect(dims([])).toBe('scalar');
    expect(numbers([0, 1, 2, 3])).toBe('0-3');
    expect(numbers([0, 2, 4, 6])).toBe('0 2 4 6');
    expect(numbers(Array.from({ length: 512 }, (_, i) => 4 * i))).toBe('0 4 8 ... 2044 (512)');
  });

  it('show control characters instead of obeying them', () => {
    expect(clean('a\x1b[31mb\nc\u202e')).toBe('a\\x1b[31mb\\nc\\u202e');
    expect(clean('a plain text')).toBe('a plain text');
    expect(clean('a\tb')).toBe('a   b');
  });
});
