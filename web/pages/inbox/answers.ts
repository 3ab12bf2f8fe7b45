import type { InboxAnswer } from "../../api/types.ts";
import { type Outcome, outcomeOf } from "../../format/outcome.ts";
import { duration } from "../../format/time.ts";

/** How the inbox responds unless told otherwise. */
export const standardAnswer: InboxAnswer = { status: 204, delay_ms: 0, silent: false };

/** Specification, "Acknowledgement and retry rules", rule 4. */
const patienceMs = 10_000;

export const statuses: readonly { value: string; text: string }[] = [
  { value: "204", text: "204 No content" },
  { value: "200", text: "200 OK" },
  { value: "400", text: "400 Bad request" },
  { value: "404", text: "404 Not found" },
  { value: "429", text: "429 Too many requests" },
  { value: "500", text: "500 Server error" },
  { value: "503", text: "503 Unavailable" },
];

const presetDelays: readonly { value: string; text: string }[] = [
  { value: "0", text: "None" },
  { value: "2000", text: "2 s" },
  { value: "5000", text: "5 s" },
  { value: "12000", text: "12 s, too late" },
];

/** Includes the delay that is set, which may not be one of ours. */
export function delaysFor({ delay_ms }: InboxAnswer): readonly { value: string; text: string }[] {
  const value = String(delay_ms);
  const isKnown = presetDelays.some((preset) => preset.value === value);
  return isKnown ? presetDelays : [...presetDelays, { value, text: duration(delay_ms) }];
}

export const isStandard = ({ status, delay_ms, silent }: InboxAnswer): boolean =>
  status === standardAnswer.status && delay_ms === standardAnswer.delay_ms && !silent;

/** What the response does to a delivery. */
export function effectOf({ status, delay_ms, silent }: InboxAnswer): Outcome {
  const outcome = outcomeOf(silent || delay_ms >= patienceMs ? null : status);
  if (silent) return { ...outcome, rule: `The inbox does not respond. ${outcome.rule}` };
  if (delay_ms >= patienceMs) {
    return { ...outcome, rule: `Postrider waits 10 s, and this takes ${duration(delay_ms)}. ${outcome.rule}` };
  }
  return delay_ms === 0
    ? outcome
    : { ...outcome, rule: `The inbox responds after ${duration(delay_ms)}. ${outcome.rule}` };
}
