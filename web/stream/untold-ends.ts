/**
 * The stream tells nothing of a delivery that ends without an attempt, only of what has ended it. The server ends them in
 * the background once it has told, thousands a second, so pages are told to look again after 1 s, 2 s, 4 s and so on: what
 * they show is never wrong for longer than the ending took.
 */
const firstPauseMs = 1_000;
/** Millions have ended by then. */
const lastPauseMs = 512_000;

interface Message {
  readonly kind: string;
  data(): Readonly<Record<string, unknown>>;
}

interface Told extends Message {
  readonly kind: "deliveries.ended";
  data(): Record<string, unknown>;
}

/** Tells whatever page is open by then: also one that was opened since. */
export function followUntoldEnds(
  listen: (hear: (messages: readonly Message[]) => void) => void,
  tell: (messages: readonly Told[]) => void,
): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = 0;
  const wait = (ms: number) => {
    clearTimeout(timer);
    pauseMs = ms;
    timer = setTimeout(() => {
      pauseMs = 0;
      tell([{ kind: "deliveries.ended", data: () => ({}) }]);
      if (ms < lastPauseMs) wait(2 * ms);
    }, ms);
  };
  listen((messages) => {
    if (pauseMs !== firstPauseMs && messages.some(endsDeliveries)) wait(firstPauseMs);
  });
}

/** Whether deliveries end by this: their webhook was removed or disabled, or their replay cancelled; or by what was missed. */
export function endsDeliveries({ kind, data }: Message): boolean {
  if (kind === "resync") return true;
  if (kind === "account.changed") return data().changed === "webhooks";
  if (kind === "webhook.changed") return data().state === "disabled";
  return kind === "replay.progressed" && data().status === "cancelled";
}
