import { formatDuration } from "../../lib/duration.ts";
import { counted } from "../count.ts";
import type { AttemptRow } from "../events/api.ts";
import { answerStart, failureWords } from "../events/words.ts";
import type { Style } from "../style.ts";
import { formatPairs, formatTable, plainText } from "../table.ts";
import { reasonWords, webhookWords } from "../webhook-words.ts";
import type { HealthRow, WebhookRow } from "./api.ts";

/** How webhooks and test deliveries read on a terminal. */

const columns = ["webhook", "name", "state", "delivered", "failed", "pending", "failure", "types", "url"];

export function webhookTable(webhooks: readonly WebhookRow[], health: readonly HealthRow[], style: Style): string {
  if (webhooks.length === 0) return "The account has no webhooks. To add one: postrider webhooks add URL";
  const rows = webhooks.map(({ id, name, state, event_types, url }) => [
    id,
    plainText(name || "–"),
    plainText(state),
    ...healthCells(health.find((each) => each.id === id)),
    event_types?.join(",") ?? "all",
    webhookWords(url),
  ]);
  const table = formatTable(columns, rows, style, (cell, column) => (isBad(cell, column) ? style.bad(cell) : cell));
  const foot = `${counted(webhooks.length, "webhook")}. The latest 100 deliveries to each are counted.`;
  return `${table}\n${style.faint(foot)}`;
}

function isBad(cell: string, column: number): boolean {
  const name = columns[column];
  return name === "state" ? cell === "disabled" : name === "failed" && /[1-9]/.test(cell);
}

/** A webhook that was added a moment ago may have none yet. */
function healthCells(health: HealthRow | undefined): readonly string[] {
  if (health === undefined) return ["–", "–", "–", ""];
  return [...[health.delivered, health.failed, health.pending].map(String), failingWith(health)];
}

/** Why the latest attempt failed; "" once one has succeeded since. */
function failingWith({ lastDeliveredAt, lastFailedAt, lastErrorCode, lastStatusCode }: HealthRow): string {
  const hasRecovered = lastFailedAt === null || (lastDeliveredAt !== null && lastDeliveredAt > lastFailedAt);
  return hasRecovered ? "" : failureWords({ errorCode: lastErrorCode, statusCode: lastStatusCode ?? null });
}

export const isAcknowledged = ({ error }: Pick<AttemptRow, "error">): boolean => error === null;

export function testPairs(attempt: AttemptRow, style: Style): string {
  const { targetWebhook, statusCode, durationMs, error, responseBody } = attempt;
  return formatPairs(
    [
      ["webhook", webhookWords(targetWebhook)],
      ["outcome", isAcknowledged(attempt) ? style.good("acknowledged") : style.bad("not acknowledged")],
      ["status", String(statusCode ?? "–")],
      ["took", formatDuration(durationMs)],
      ...(error === null ? [] : [["reason", reasonWords(error)] as const]),
      ["answer", answerStart(responseBody) || "–"],
    ],
    style,
  );
}
