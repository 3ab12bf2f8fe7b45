/** States of records that have ended, as the column has them. */
export const endedStates = { DELIVERED: 1, FAILED: 2, SKIPPED: 3 } as const;
