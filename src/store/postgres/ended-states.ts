/** States of records that have ended, as stored in the column. */
export const endedStates = { DELIVERED: 1, FAILED: 2, SKIPPED: 3 } as const;
