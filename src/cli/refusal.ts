import { StartupError, UsageError } from "../domain/errors.ts";

const codesOfRules: readonly unknown[] = [
  "invalid_request",
  "field_required",
  "invalid_webhook_url",
  "invalid_event_type",
  "too_many_event_types",
];

/** The error for what a server refuses. If a value breaks a rule, it was typed: the rest of a request is the command's own. */
export function refusal(words: string, { status, code }: { status: number; code: unknown }): StartupError {
  return status === 400 && codesOfRules.includes(code) ? new UsageError(words) : new StartupError(words);
}
