import { codeOf } from "./error-message.ts";

/** The codes of the system and of SQLite; the last is SQLite's for the small file next to its log. */
const codes = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"]);

/** Whether something failed because there was no room for it. */
export const isDiskFull = (error: unknown): boolean => codes.has(codeOf(error));
