import { systemClock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { createVault } from "../../lib/vault.ts";
import { migrations, standingOf } from "./migrations.ts";
import { openDatabase } from "./open.ts";
import { beginUpgrade, planSnapshot, removeOlderSnapshots } from "./pre-migration.ts";
import type { UpgradeMessage, UpgradeRequest } from "./upgrade.ts";

/** The other end of `upgrade.ts`. The build lists this file as a separate entry point. */
declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<UpgradeRequest>) => {
  say(upgrade(data));
};

const say = (message: UpgradeMessage) => self.postMessage(message);

function upgrade({ dataDir, masterKey, stop, takesSnapshot, forMove, checkpoints }: UpgradeRequest): UpgradeMessage {
  const flag = new Int32Array(stop);
  try {
    const client = openDatabase({
      dataDir,
      forMove,
      checkpoints,
      ...(masterKey && { vault: createVault(masterKey) }),
      watch: {
        progress: (progress) => say({ kind: "progress", progress }),
        isStopped: () => Atomics.load(flag, 0) !== 0,
        monotonicMs: systemClock.monotonicMs,
        copiesLog: checkpoints === "own",
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
    // By force: a connection with an unfinalized statement would stay open until that is garbage collected, and whoever is told
    // that the upgrade has ended may move the files.
    client.close(true);
    return { kind: "ended", finished, removed };
  } catch (error) {
    return { kind: "failed", message: messageOf(error) };
  }
}
