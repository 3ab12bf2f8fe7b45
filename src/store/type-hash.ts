/**
 * An event type in six bytes: 48 bits of its XXH64. It is part of the index that lists are walked along, so that a list
 * filtered by type needs nothing but that index. With 10,000 types per account, two share a hash in one of five million
 * accounts.
 */
export const typeHashOf = (type: string): number => Number(Bun.hash.xxHash64(type) & lowest48Bits);

const lowest48Bits = 0xffff_ffff_ffffn;
