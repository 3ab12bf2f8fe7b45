import { call } from "../api/client.ts";
import type { Replay, ReplayPage } from "../api/types.ts";
import { aheadOf } from "./replay-groups.ts";

/** As many as can run or wait, and single ones that were started since. */
const latestSize = 100;

/** What a replay that was just started waits for. Where that cannot be read, its row says it later. */
export async function readAhead(id: string): Promise<Replay | undefined> {
  const query = { size: latestSize };
  const { replays } = await call<ReplayPage>("/v1/events/replays", { query }).catch(() => ({ replays: [] }));
  const own = replays.find((replay) => replay.id === id);
  return own && aheadOf(own, replays);
}
