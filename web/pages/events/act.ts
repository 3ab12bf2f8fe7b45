import { ApiError } from "../../api/client.ts";
import { say } from "../../parts/said.tsx";

/** Does what a key asked for; why it did not work is said, as a button says it. */
export async function tryAndSay(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    say(error instanceof ApiError ? error.message : String(error), "bad");
  }
}
