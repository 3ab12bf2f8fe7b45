import { type BackupsOptions, createBackups, type RunOwn } from "../../src/backup/backups.ts";
import { backupName, newestFirst, type Place, timeInName } from "../../src/backup/place.ts";
import { createLog } from "../../src/lib/log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

export const hourMs = 3_600_000;
// Of the machine that runs the tests, whatever its zone is.
export const noon = new Date(2026, 2, 1, 12).getTime();

/** A server's backups, with commands that do what they are told and a place in memory. */
export function createBackupsWorld(given: Partial<BackupsOptions> = {}) {
  const clock = createFakeClock(noon);
  const commands: string[][] = [];
  /** The folders that the commands write in, apart from the data directory. */
  const targets: (string | null | undefined)[] = [];
  const logged: Record<string, unknown>[] = [];
  const stored: string[] = [];
  let notes: string | null = null;
  let answer: RunOwn = async () => ({ code: 0, out: "", err: "" });
  /** What the operator hears of failures. */
  const told: string[] = [];
  const place: Place = {
    name: "memory",
    folder: "/backups",
    put: async () => 0,
    list: async (now) =>
      newestFirst(
        stored.map((name) => ({ name, bytes: 9, createdAt: timeInName(name) ?? 0 })),
        now,
      ),
    async *read() {},
    async remove(name) {
      stored.splice(stored.indexOf(name), 1);
    },
  };
  const open = () =>
    createBackups({
      url: "/backups",
      cron: "0 3 * * *",
      keep: 2,
      isEncrypted: false,
      openPlace: () => place,
      folder: "/data",
      notes: {
        read: () => notes,
        write(text) {
          notes = text;
        },
      },
      clock,
      log: createLog({
        level: "info",
        format: "json",
        now: () => clock.now(),
        out: (line) => void logged.push(JSON.parse(line)),
      }),
      run(args, signal, target) {
        commands.push([...args]);
        targets.push(target);
        return answer(args, signal);
      },
      onFailed: (kind, error) => void told.push(`${kind}: ${error}`),
      ...given,
    });
  return {
    told,
    clock,
    commands,
    targets,
    logged,
    stored,
    place,
    open,
    /** From now on each backup is made, and is whole or not. */
    succeeds(verified = true) {
      answer = async (args) => {
        const isBackup = args[1] !== "verify";
        const name = backupName(clock.now(), false);
        if (isBackup) stored.push(name);
        const backup = isBackup ? `/backups/${name}` : args[2];
        return {
          code: 0,
          out: JSON.stringify({ backup, bytes: 9, verified, faults: verified ? [] : ["a page"] }),
          err: "",
        };
      };
    },
    /** From now on each backup is made, and there is no room to verify it. */
    cannotVerify(error: string) {
      answer = async () => {
        stored.push(backupName(clock.now(), false));
        return {
          code: 1,
          out: JSON.stringify({ bytes: 9, verified: null, faults: [], error }),
          err: `postrider: ${error}\n`,
        };
      };
    },
    /** The commands end as they would have, but only then. */
    waitsFor(then: Promise<void>) {
      const before = answer;
      answer = async (...command) => {
        await then;
        return before(...command);
      };
    },
    fails(err: string) {
      answer = async () => ({ code: 1, out: "", err });
    },
    /** @param err what the command says as it is stopped */
    hangs(err = "") {
      answer = (_, signal) =>
        new Promise((resolve) => signal.addEventListener("abort", () => resolve({ code: 143, out: "", err })));
    },
    cannotRun() {
      answer = () => Promise.reject(new Error("no process left"));
    },
  };
}
