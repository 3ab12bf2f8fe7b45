import { serverRestored, webhookDisabled, webhookRemoved } from "../../domain/failure.ts";
import { formatDuration } from "../../lib/duration.ts";
import type { WebhookRow } from "../client/webhook.ts";
import { counted } from "../count.ts";
import type { AttemptRow } from "../events/api.ts";
import { answerStart, attemptReason, failureWords } from "../events/words.ts";
import type { Style } from "../style.ts";
import { formatPairs, formatTable, plainText } from "../table.ts";
import { webhookWords } from "../webhook-words.ts";
import type { FailureRow, HealthRow } from "./api.ts";

/** How webhooks and test deliveries read on a terminal. */

const columns = ["webhook", "name", "state", "delivered", "failed", "pending", "failure", "types", "url"];

/** @param failures of all webhooks */
export function webhookTable(
  webhooks: readonly WebhookRow[],
  health: readonly HealthRow[],
  failures: readonly FailureRow[],
  style: Style,
): string {
  if (webhooks.length === 0) return "The account has no webhooks. To add one: postrider webhooks add URL";
  const rows = webhooks.map(({ id, name, state, event_types, url }) => [
    id,
    plainText(name || "–"),
    plainText(state),
    ...healthCells(
      health.find((each) => each.id === id),
      failures.filter(({ webhookId }) => webhookId === id),
    ),
    event_types?.join(",") ?? "all",
    webhookWords(url),
  ]);
  const table = formatTable(columns, rows, style, (cell, column) => (isBad(cell, column) ? style.bad(cell) : cell));
  const foot = `${counted(webhooks.length, "webhook")}. The latest 100 deliveries to each are counted; a failure may be of any of the last 24 hours.`;
  return `${table}\n${style.faint(foot)}`;
}

function isBad(cell: string, column: number): boolean {
  const name = columns[column];
  return name === "state" ? cell === "disabled" : name === "failed" && /[1-9]/.test(cell);
}

/** A webhook that was added a moment ago may have none yet. */
function healthCells(health: HealthRow | undefined, failures: readonly FailureRow[]): readonly string[] {
  if (health === undefined) return ["–", "–", "–", ""];
  return [...[health.delivered, health.failed, health.pending].map(String), failingWith(health, failures)];
}

/** Deliveries end like this without an attempt. */
const withoutAttempt: readonly (string | null)[] = [webhookRemoved, webhookDisabled, serverRestored].map(
  ({ code }) => code,
);

type Failed = Omit<FailureRow, "webhookId">;

/** Why the latest attempt failed, also of a delivery that is not among those counted; "" once one has succeeded since. */
function failingWith(health: HealthRow, failures: readonly FailureRow[]): string {
  const { lastDeliveredAt, lastFailedAt, lastErrorCode: errorCode, lastStatusCode: statusCode = null } = health;
  const counted: Failed[] = lastFailedAt === null ? [] : [{ errorCode, statusCode, lastFailedAt }];
  const [latest] = [...counted, ...failures.filter((each) => !withoutAttempt.includes(each.errorCode))].toSorted(
    (one, other) => Date.parse(other.lastFailedAt) - Date.parse(one.lastFailedAt),
  );
  const hasRecovered = latest === undefined || (lastDeliveredAt !== null && lastDeliveredAt > latest.lastFailedAt);
  return hasRecovered ? "" : failureWords(latest);
}

export const isAcknowledged = ({ error }: Pick<AttemptRow, "error">): boolean => error === null;

/** An older server does not say which event it sent. */
export type TestAttemptRow = AttemptRow & { readonly eventId?: string };

export function testPairs(attempt: TestAttemptRow, style: Style): string {
  const { eventId, targetWebhook, statusCode, durationMs, error, responseBody } = attempt;
  return formatPairs(
    [
      ["webhook", webhookWords(targetWebhook)],
      ...(eventId === undefined ? [] : [["event", plainText(eventId)] as const]),
      ["outcome", isAcknowledged(attempt) ? style.good("acknowledged") : style.bad("not acknowledged")],
      ["status", String(statusCode ?? "–")],
      ["took", formatDuration(durationMs)],
      ...(error === null ? [] : [["reason", attemptReason(error, attempt)] as const]),
      ["answer", answerStart(responseBody) || "–"],
    ],
    style,
  );
}
