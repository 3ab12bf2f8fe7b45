import { ApiError } from "../../api/client.ts";
import { say } from "../../parts/said.tsx";

/** Runs what a key triggered, and shows why it failed, as a button does. */
export async function tryAndSay(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    say(error instanceof ApiError ? error.message : String(error), "bad");
  }
}
