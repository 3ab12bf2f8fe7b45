import { messageOf } from "../../lib/error-message.ts";
import type { CompactMessage, CompactRequest } from "./compact.ts";
import { copyDatabase } from "./copy-database.ts";
import { isDamage } from "./damage.ts";

/** The other end of `compact.ts`. The build lists this file as a separate entry point. */
declare const self: Worker;

self.onmessage = ({ data: { from, to } }: MessageEvent<CompactRequest>) => {
  self.postMessage(compact(from, to));
};

function compact(from: string, to: string): CompactMessage {
  try {
    copyDatabase(from, to, { shrinks: true });
    return { kind: "done" };
  } catch (error) {
    return { kind: "failed", message: messageOf(error), isDamage: isDamage(error) };
  }
}
