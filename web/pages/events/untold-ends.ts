/** The stream tells nothing of a delivery that ends without an attempt, only of what has ended it. */
export const endingKinds = ["account.changed", "webhook.changed", "replay.progressed"] as const;

/** The server ends them in the background, thousands a second, once it has told. */
export const untoldMs = 1_000;

interface Message {
  readonly kind: string;
  data(): Readonly<Record<string, unknown>>;
}

/** Whether deliveries end by this: their webhook was removed or disabled, or their replay cancelled. */
export function endsDeliveries({ kind, data }: Message): boolean {
  const { changed, state, status } = data();
  if (kind === "account.changed") return changed === "webhooks";
  return kind === "webhook.changed" ? state === "disabled" : status === "cancelled";
}
