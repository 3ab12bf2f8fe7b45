import { useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Inbox } from "../../api/types.ts";
import { useRefresh } from "../../stream/live.ts";
import { type Loaded, useLoaded } from "../../stream/load.ts";
import { mergeInbox } from "./merge.ts";

/** As many as the server keeps. */
const mostDeliveries = 100;
const followEveryMs = 500;

/** The account's inbox, live: only what has arrived since the last read is fetched. */
export function useInbox(): Loaded<Inbox> {
  const inbox = useLoaded("inbox", (signal) => call<Inbox>("/v1/inbox", { query: { size: mostDeliveries }, signal }));
  const latest = useRef(inbox);
  latest.current = inbox;
  const reading = useRef<"no" | "yes" | "again">("no");

  async function follow(): Promise<void> {
    const after = latest.current.data?.deliveries[0]?.id;
    if (after === undefined) return latest.current.reload();
    if (reading.current !== "no") {
      reading.current = "again";
      return;
    }
    reading.current = "yes";
    try {
      const come = await call<Inbox>("/v1/inbox", { query: { size: mostDeliveries, after } });
      const { data, put } = latest.current;
      if (data) put(mergeInbox(data, come));
    } catch {
      // What is shown stays; the next message triggers another read.
    }
    const isAskedAgain = (reading.current as string) === "again";
    reading.current = "no";
    if (isAskedAgain) setTimeout(() => void follow(), followEveryMs);
  }
  useRefresh(["delivery.attempted", "account.changed"], followEveryMs, () => void follow());

  return inbox;
}
