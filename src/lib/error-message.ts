/** What went wrong, in the words of whatever was thrown: for logs and for operators. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const longestLine = 500;

/** A text as one line of bounded length, for what was said by somebody else: a gateway's page of an error may have any length. */
export function oneLine(text: string): string {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length > longestLine ? `${line.slice(0, longestLine - 1)}…` : line;
}

/** The code of an error of the system, the runtime or a library, such as `ENOENT`; empty for whatever has none. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** As `messageOf`, with the stack: for the log of what is a bug. */
export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);
