import type { Webhook } from "../../api/types.ts";

/** A payload that the webhook accepts, as a starting point. */
export function sampleOf({ event_types }: Pick<Webhook, "event_types">): string {
  const taken = event_types?.find((pattern) => !pattern.startsWith("postrider.")) ?? "order.created";
  const sample = { event_type: taken.replace("*", "created"), order_id: 1042, amount: "49.90" };
  return JSON.stringify(sample, null, 2);
}

/** Why it is not a payload; null: it is one. */
export function payloadFault(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? null : 'A payload is a JSON object: {"event_type": …}.';
  } catch (error) {
    return `Not valid JSON: ${error instanceof Error ? error.message : error}`;
  }
}

/** The payload as typed: big numbers, key order and white space are preserved. */
export const testBody = (payload: string, eventType: string): string =>
  `{"payload":${payload}${eventType === "" ? "" : `,"event_type":${JSON.stringify(eventType)}`}}`;
