/**
 * A type of events in six bytes: 48 bits of its XXH64. It stands in the index that lists are walked along, so that one that
 * is filtered by a type stays inside it. Of 10,000 types of an account two have the same one in five million accounts.
 */
export const typeHashOf = (type: string): number => Number(Bun.hash.xxHash64(type) & lowest48Bits);

const lowest48Bits = 0xffff_ffff_ffffn;
