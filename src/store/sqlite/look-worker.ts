import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../lib/error-message.ts";
import { isDamage } from "./damage.ts";
import { openToLook, type PagesCheck, type PagesRequest } from "./look.ts";
import { databaseFile } from "./open.ts";

/** The other end of `checkPages` in `look.ts`. The build lists this file as a separate entry point. */
declare const self: Worker;

self.onmessage = ({ data: { dataDir } }: MessageEvent<PagesRequest>) => {
  self.postMessage(check(dataDir));
};

function check(dataDir: string): PagesCheck {
  const { client, isTakenAsStill } = openToLook(dataDir);
  let found: PagesCheck;
  try {
    const words = client.query<{ quick_check: string }, []>("pragma quick_check(1)").values().flat().join("; ");
    found =
      words === "ok" ? { kind: "whole" } : { kind: "damaged", fault: words.replaceAll(/\s+/g, " ").slice(0, 200) };
  } catch (error) {
    found = { kind: isDamage(error) ? "damaged" : "failed", fault: messageOf(error) };
  } finally {
    client.close(true);
  }
  // If a server was started in the meantime, it may have changed the file that was assumed not to change.
  const isStill = !existsSync(`${realpathSync(join(dataDir, databaseFile))}-wal`);
  return isTakenAsStill && !isStill ? check(dataDir) : found;
}
