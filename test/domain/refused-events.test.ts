import { expect, test } from "bun:test";
import { DomainError, type ErrorKind } from "../../src/domain/errors.ts";
import { refusalReasonOf } from "../../src/domain/refused-events.ts";

test.each<[ErrorKind, string, string | null]>([
  ["rate_limited", "quota_exceeded", "quota"],
  ["rate_limited", "rate_limited", null],
  ["payment_required", "card_not_verified", "inactive"],
  ["payment_required", "account_suspended", "inactive"],
  ["forbidden", "account_suspended", "inactive"],
  ["invalid", "invalid_json", "invalid"],
  ["invalid", "request_abandoned", null],
  ["invalid", "body_incomplete", null],
  ["too_large", "body_too_large", "invalid"],
  ["unsupported_media_type", "unsupported_media_type", "invalid"],
  ["idempotency_conflict", "idempotency_key_reused", "invalid"],
  ["unauthenticated", "account_gone", null],
  ["unavailable", "storage_full", null],
])("an event that was refused as %s %s counts as %p", (kind, code, reason) => {
  expect<string | null>(refusalReasonOf(new DomainError({ kind, code, message: "No." }))).toBe(reason);
});
