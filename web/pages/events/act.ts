import { ApiError } from "../../api/client.ts";
import type { Webhook } from "../../api/types.ts";
import { say } from "../../parts/said.tsx";
import { webhookInWords } from "./chips.ts";

export const sayDisabled = (webhook: Webhook): void =>
  say(`${webhookInWords(webhook.id, [webhook])} is disabled. Enable it, then replay.`, "bad", {
    href: `/webhooks/${webhook.id}`,
    text: "See the webhook",
  });

/** Runs what a key triggered, and shows why it failed, as a button does. */
export async function tryAndSay(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    say(error instanceof ApiError ? error.message : String(error), "bad");
  }
}
