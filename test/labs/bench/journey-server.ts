import { uptime } from "node:os";
import { createApp } from "../../../src/app.ts";
import { createRunOwn } from "../../../src/cli/run-own.ts";
import { loadConfig } from "../../../src/config.ts";
import { openDataDir } from "../../../src/data-dir.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createLog } from "../../../src/lib/log.ts";
import { createSteadyClock } from "../../../src/lib/steady-clock.ts";
import { type VariantName, variants } from "./journey-variants.ts";

/**
 * Postrider as `serve` builds it, by its settings in the environment, with the store of a variant.
 *
 * Usage: bun journey-server.ts <variant>. Ends in order on SIGTERM.
 */
const variant = variants[process.argv[2] as VariantName];
const config = loadConfig(process.env, new Map());
const log = createLog({
  level: config.logLevel,
  format: "json",
  now: systemClock.now,
  out: (line) => process.stdout.write(`${line}\n`),
});
const clock = createSteadyClock({
  source: systemClock,
  uptimeMs: () => uptime() * 1000,
  tell: ({ kind }) => log.write("warn", "clock.jumped", { jump: kind }),
});
const home = openDataDir(config.dataDir);
const app = await createApp(config, {
  ...{ clock, log, home, secrets: home.secrets, storeFolder: home.path },
  runOwn: createRunOwn(process.env, config.dataDir),
  // The accounts of a bench have nothing to guard.
  passwordCost: { memoryCost: 8, timeCost: 1 },
  wrapStore: (store) => ({ ...store, ...variant.replacing(store) }),
});
await app.start();

process.once("SIGTERM", async () => {
  await app.stop();
  process.exit(0);
});
