import { isUnavailable } from "../domain/errors.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";

/** Work on payments was interrupted, and is tried again: an error only if that is not just because the store is away. */
export function tellFailure(log: Pick<Log, "write">, error: unknown): void {
  log.write(isUnavailable(error) ? "warn" : "error", "billing.failed", { error: messageOf(error) });
}
