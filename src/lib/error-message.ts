/** What went wrong, in the words of whatever was thrown: for a log, and for an operator. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
