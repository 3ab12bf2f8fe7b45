import { type Config, readSettings, toConfig } from "../../config.ts";
import { findExposed } from "../../data-dir.ts";
import { StartupError } from "../../domain/errors.ts";
import { describePair } from "../../lib/certificate.ts";
import { systemClock as clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { readServerFile } from "../../server-file.ts";
import { lookAtStore } from "../../store/open.ts";
import { version } from "../../version.ts";
import { type Command, jsonFlag, settingFlags } from "../command.ts";
import { exitCode, type Io } from "../io.ts";
import { createStyle } from "../style.ts";
import { plainText } from "../table.ts";
import { bad, badInWords, type Finding, type Found } from "./finding.ts";
import {
  findServer,
  isInPlaceOfFolder,
  know,
  lookAtBackups,
  lookAtDisk,
  lookAtLog,
  lookAtMasterKey,
  lookAtReplication,
  lookThroughPages,
  lookUp,
  tryProxy,
} from "./gather.ts";
import * as rules from "./rules.ts";

const deepFlag = { name: "--deep", doc: "Look through every page of the database, however large and long." };

/** `postrider doctor`: examines a server and its data, and changes nothing. */
export const doctorCommand: Command = {
  words: ["doctor"],
  operands: [],
  flags: [jsonFlag, deepFlag, ...settingFlags],
  summary: "Check the server, its data and its environment, and say how to fix what is wrong",
  details: `Works while the server runs and while it does not, and changes nothing. Give it the
server's own settings, and run it as the server's user. Exit code 0: nothing needs doing.
1: something does.`,
  async run({ flags }, io) {
    const findings = await examine(flags, io);
    const isWell = findings.every(({ state }) => state === "ok");
    if (flags.has(jsonFlag.name)) io.out(JSON.stringify({ ok: isWell, findings }));
    else io.out(findings.map((finding) => forPeople(finding, io)).join("\n"));
    return isWell ? exitCode.ok : exitCode.failed;
  },
};

const nameTheFolder = "name the server's folder with --data-dir";

async function examine(flags: ReadonlyMap<string, string>, io: Io): Promise<Finding[]> {
  let config: Config;
  const warnings: string[] = [];
  try {
    config = toConfig(readSettings(io.env, flags), io.env, (message) => void warnings.push(message));
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    // Without the settings there is no telling where to look for the rest.
    return [{ check: "settings", ...badInWords(messageOf(error)) }];
  }
  const { dataDir, databaseUrl, tls } = config;
  if (isInPlaceOfFolder(dataDir)) return [{ check: "disk", ...bad(`${dataDir} is not a folder.`, nameTheFolder) }];
  const whereabouts = await know(() => readServerFile(dataDir));
  // Another user than the server's can look at nothing else, either.
  if ("failure" in whereabouts) return [{ check: "permissions", ...badInWords(whereabouts.failure) }];
  const isDeep = flags.has(deepFlag.name);
  const inFile = databaseUrl === null;
  const [server, store, disk, dns, proxy, pages, backups] = await Promise.all([
    know(() => findServer(dataDir, clock)),
    know(() => lookAtStore({ dataDir, url: databaseUrl, clock })),
    know(() => lookAtDisk(config)),
    config.deliveryProxy === null ? lookUp(config.dnsServers, clock) : null,
    tryProxy(config.deliveryProxy, clock),
    inFile ? know(() => lookThroughPages(dataDir, isDeep, clock)) : { value: null },
    inFile ? lookAtBackups(config, clock) : null,
  ]);
  const key = await lookAtMasterKey(config, store, clock);
  const nowMs = clock.now();
  const running = "value" in server && server.value !== null && rules.isReached(server.value) ? server.value : null;
  // Servers on a database elsewhere keep nothing in this folder, and one in another container may not be reached.
  const mayRun = !inFile || !("value" in server) || server.value !== null;
  const looked = "value" in store ? store.value : null;
  const found: readonly (readonly [check: string, found: Found])[] = [
    ["server", rules.judgeServer(server, looked, version, dataDir)],
    ["deliveries", rules.judgeDeliveries(nowMs, store, running, mayRun)],
    [
      "disk",
      "value" in disk
        ? rules.judgeDisk(disk.value, running)
        : bad(`${dataDir} cannot be read (${disk.failure}).`, nameTheFolder),
    ],
    [
      "permissions",
      rules.judgePermissions("value" in disk ? findExposed(dataDir, config.masterKeyFile) : null, warnings),
    ],
    ["key", rules.judgeKey(key, store)],
    ["schema", "value" in store ? rules.judgeSchema(looked, mayRun) : badInWords(store.failure)],
    ["database", "value" in pages ? rules.judgePages(pages.value) : badInWords(pages.failure)],
    config.checkpoints === "external"
      ? ["litestream", rules.judgeReplication(lookAtReplication(dataDir))]
      : ["log", rules.judgeLog(inFile ? lookAtLog(dataDir) : null, store)],
    ["backups", rules.judgeBackups(nowMs, backups, !config.localMode)],
    ["clock", rules.judgeClock(nowMs, looked, running)],
    ["dns", rules.judgeDns(dns, !config.localMode)],
    ["proxy", rules.judgeProxy(proxy)],
    [
      "certificate",
      rules.judgeCertificate(nowMs, tls === null ? null : Date.parse(describePair(tls).validTo), config.publicUrl),
    ],
    ["mail", rules.judgeMail(config.mail)],
  ];
  return found.map(([check, rest]) => ({ check, ...rest }));
}

function forPeople({ check, state, message, remedy }: Finding, io: Io): string {
  const style = createStyle(io);
  const mark = { ok: style.good, warning: style.bold, bad: style.bad }[state];
  const line = `${mark(state.padEnd(7))}  ${check.padEnd(11)}  ${plainText(message)}`;
  return remedy === null ? line : `${line}\n${" ".repeat(22)}Try: ${plainText(remedy)}.`;
}
