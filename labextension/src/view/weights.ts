/** What arrays weigh, from their element types' HLO names: as `shardnb.report.dtypes`. */

import { Value } from './report';

const BITS: Record<string, number> = {
  pred: 8,
  token: 0,
  opaque: 0,
  'key<fry>': 64,
  'key<rbg>': 128,
  'key<unsafe_rbg>': 128
};

/** Give the bytes of an array, each element in its own bits, rounded up to a byte. */
export function sizeInBytes(dtype: string, shape: readonly number[]): number {
  const bits = BITS[dtype] ?? Number(/\d+/.exec(dtype)?.[0] ?? 0);
  return Math.ceil((bits * shape.reduce((product, dim) => product * dim, 1)) / 8);
}

/** Give the bytes of one device's block. */
export function shardBytes(value: Value): number {
  return sizeInBytes(value.dtype, value.shard_shape);
}
