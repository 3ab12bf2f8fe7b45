import { systemClock } from "../../src/lib/clock.ts";
import { moveToPostgres, moveToSqlite } from "../../src/store/move/move.ts";
import { masterKey } from "./filled-folder.ts";

/** A move that kills itself once this many batches are written, with others under way. */
const { direction, dataDir, url, count } = JSON.parse(process.env.KILLED_MOVE ?? "{}");
let batches = 0;
await { moveToPostgres, moveToSqlite }[direction as "moveToPostgres" | "moveToSqlite"]({
  ...{ dataDir, url, masterKey, clock: systemClock, durability: "waived" },
  onProgress() {
    batches += 1;
    if (batches === count) process.kill(process.pid, "SIGKILL");
  },
});
