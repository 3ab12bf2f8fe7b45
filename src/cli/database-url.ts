import { UsageError } from "../domain/errors.ts";
import { databaseUrl } from "../setting-forms.ts";

/** The database of a trial, which its servers would otherwise refuse in words about a setting. @throws UsageError */
export function readDatabaseUrl(flags: ReadonlyMap<string, string>, flag: string): string | undefined {
  const url = flags.get(flag);
  if (url === undefined || databaseUrl.parse(url) !== null) return url;
  throw new UsageError(`${flag} must be ${databaseUrl.rule}. Try: ${flag} postgres://postgres@localhost/trial`);
}
