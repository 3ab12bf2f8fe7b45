/** What went wrong, in the words of whatever was thrown: for logs and for operators. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** As `messageOf`, with the stack: for the log of what is a bug. */
export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);
