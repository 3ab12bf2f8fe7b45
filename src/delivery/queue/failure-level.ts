import { isUnavailable } from "../../domain/errors.ts";
import type { LogLevel } from "../../lib/log.ts";

/**
 * The level at which the queue logs that the store refused it something. A storage that is away says so itself, once
 * (`storage.failed`); here it would be a line for every attempt.
 */
export function failureLevel(error: unknown, isStopping: boolean): LogLevel {
  if (isUnavailable(error)) return "debug";
  return isStopping ? "warn" : "error";
}
