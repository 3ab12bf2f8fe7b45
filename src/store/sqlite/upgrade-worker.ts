import { systemClock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { createVault } from "../../lib/vault.ts";
import { migrations, standingOf } from "./migrations.ts";
import { openDatabase } from "./open.ts";
import { beginUpgrade, planSnapshot, removeOlderSnapshots } from "./pre-migration.ts";
import type { UpgradeMessage, UpgradeRequest } from "./upgrade.ts";

/** The other end of `upgrade.ts`. The build names this file as an entry point of its own. */
declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<UpgradeRequest>) => {
  say(upgrade(data));
};

const say = (message: UpgradeMessage) => self.postMessage(message);

function upgrade({ dataDir, masterKey, stop, takesSnapshot, forMove }: UpgradeRequest): UpgradeMessage {
  const flag = new Int32Array(stop);
  try {
    const client = openDatabase({
      dataDir,
      forMove,
      ...(masterKey && { vault: createVault(masterKey) }),
      watch: {
        progress: (progress) => say({ kind: "progress", progress }),
        isStopped: () => Atomics.load(flag, 0) !== 0,
        monotonicMs: systemClock.monotonicMs,
      },
      beforeUpgrade(client, standing) {
        const plan = planSnapshot(client, standing, migrations.length);
        if (plan && takesSnapshot) say({ kind: "copying", plan });
        const taken = beginUpgrade(client, standing, { plan, isWanted: takesSnapshot });
        if (taken) say({ kind: "copied", snapshot: taken });
      },
    });
    const finished = standingOf(client).schema === migrations.length;
    const removed = finished ? removeOlderSnapshots(client) : [];
    // A statement that nobody has ended holds a closed connection open until it is collected; whoever hears of the end may
    // move the files.
    Bun.gc(true);
    client.close();
    return { kind: "ended", finished, removed };
  } catch (error) {
    return { kind: "failed", message: messageOf(error) };
  }
}
