import { systemClock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { createVault } from "../../lib/vault.ts";
import { migrations, standingOf } from "./migrations.ts";
import { openDatabase } from "./open.ts";
import type { UpgradeMessage, UpgradeRequest } from "./upgrade.ts";

/** The other end of `upgrade.ts`. The build names this file as an entry point of its own. */
declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<UpgradeRequest>) => {
  say(upgrade(data));
};

const say = (message: UpgradeMessage) => self.postMessage(message);

function upgrade({ dataDir, masterKey, stop }: UpgradeRequest): UpgradeMessage {
  const flag = new Int32Array(stop);
  try {
    const client = openDatabase({
      dataDir,
      ...(masterKey && { vault: createVault(masterKey) }),
      watch: {
        progress: (progress) => say({ kind: "progress", progress }),
        isStopped: () => Atomics.load(flag, 0) !== 0,
        monotonicMs: systemClock.monotonicMs,
      },
    });
    const finished = standingOf(client).schema === migrations.length;
    client.close();
    return { kind: "ended", finished };
  } catch (error) {
    return { kind: "failed", message: messageOf(error) };
  }
}
