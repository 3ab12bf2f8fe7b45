/** What went wrong, in the words of whatever was thrown: for logs and for operators. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
