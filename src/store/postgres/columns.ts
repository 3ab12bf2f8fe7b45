import { bigint, customType } from "drizzle-orm/pg-core";

/** Column types used by every table. Times are milliseconds since the Unix epoch, and keys are numbers up to 2^53. */

export const bytes = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/** What would be `integer` in SQLite: a key, a time, a sequence number, an amount of money. */
export const whole = (name: string) => bigint(name, { mode: "number" });
