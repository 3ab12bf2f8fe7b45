import type { Webhook } from "../../api/types.ts";

/** A payload that the webhook takes, to begin with. */
export function sampleOf({ event_types }: Pick<Webhook, "event_types">): string {
  const taken = event_types?.find((pattern) => !pattern.startsWith("postrider.")) ?? "order.created";
  const sample = { event_type: taken.replace("*", "created"), order_id: 1042, amount: "49.90" };
  return JSON.stringify(sample, null, 2);
}

/** Why it is no payload; null: it is one. */
export function payloadFault(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? null : 'A payload is a JSON object: {"event_type": …}.';
  } catch (error) {
    return `Not valid JSON: ${error instanceof Error ? error.message : error}`;
  }
}

/** The payload as it was typed: big numbers, the order of its keys and its white space stay. */
export const testBody = (payload: string, eventType: string): string =>
  `{"payload":${payload}${eventType === "" ? "" : `,"event_type":${JSON.stringify(eventType)}`}}`;
