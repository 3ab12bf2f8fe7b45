import { describe, expect, test } from "bun:test";
import { type BackupsOptions, createBackups, type RunOwn } from "../../src/backup/backups.ts";
import { backupName, newestFirst, type Place, timeInName } from "../../src/backup/place.ts";
import { StartupError } from "../../src/domain/errors.ts";
import { createLog } from "../../src/lib/log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const hour = 3_600_000;
// Of the machine that runs the tests, whatever its zone is.
const noon = new Date(2026, 2, 1, 12).getTime();

/** A server's backups, with commands that do what they are told and a place in memory. */
function createWorld(given: Partial<BackupsOptions> = {}) {
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
  /** Resolves the commands that wait. */
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

describe("backups by schedule", () => {
  test("are made at their times, verified, and make room for each other", async () => {
    const world = createWorld();
    const backups = world.open();
    world.succeeds();
    backups.start();
    expect(backups.nextAt()).toBe(noon + 15 * hour);
    world.clock.advance(14 * hour);
    expect(world.commands).toEqual([]);
    for (let day = 0; day < 4; day++) {
      world.clock.advance(24 * hour);
      await backups.whenIdle();
    }
    const first = `/backups/${backupName(noon + 15 * hour, false)}`;
    expect(world.commands[0]).toEqual(["backup", first, "--verify", "--dir", "/data", "--json"]);
    expect(world.targets[0]).toBe("/backups");
    expect(world.commands).toHaveLength(4);
    expect(world.stored).toHaveLength(2);
    expect(world.logged.map(({ event }) => event).filter((event) => event === "backup.made")).toHaveLength(4);
    expect(backups.figures()).toMatchObject({ hasFailed: false, failures: 0, bytes: 9, isUnderWay: false });
    // A server that starts again knows it.
    expect(world.open().figures()?.verifiedAt).toBe(backups.figures()?.verifiedAt as number);
    await backups.stop();
    world.clock.advance(48 * hour);
    expect(world.commands).toHaveLength(4);
  });

  test("that fail are logged once each with their cause, and take nothing away", async () => {
    const world = createWorld();
    const backups = world.open();
    world.succeeds();
    backups.start();
    for (let day = 0; day < 2; day++) {
      world.clock.advance(24 * hour);
      await backups.whenIdle();
    }
    const whole = [...world.stored];
    world.fails("something else\npostrider: The backup cannot be written. Try: free up space on its disk.\n");
    world.clock.advance(24 * hour);
    await backups.whenIdle();
    world.succeeds(false);
    for (let day = 0; day < 3; day++) {
      world.clock.advance(24 * hour);
      await backups.whenIdle();
    }
    expect(world.told).toEqual([
      "backup: The backup cannot be written. Try: free up space on its disk.",
      ...Array(3).fill("backup: a page"),
    ]);
    const failed = world.logged.filter(({ event }) => event === "backup.failed");
    expect(failed.map(({ level, error }) => [level, error])).toEqual([
      ["error", "The backup cannot be written. Try: free up space on its disk."],
      ...Array(3).fill(["error", "a page"]),
    ]);
    expect(backups.figures()).toMatchObject({ hasFailed: true, failures: 4 });
    // The newest that is whole is kept beside the newest two.
    expect(world.stored).toHaveLength(3);
    expect(world.stored).toContain(whole.at(-1) as string);
    await backups.stop();
  });

  test("that cannot be verified have failed, and make room all the same, but for the newest that is whole", async () => {
    const world = createWorld({ cron: null });
    const backups = world.open();
    const make = async () => {
      world.clock.advance(hour);
      backups.begin();
      await backups.whenIdle();
      return world.stored.at(-1) as string;
    };
    const error = "/backups/a was made, but could not be verified: There is no room. Try: free up space.";
    world.cannotVerify(error);
    // There is nothing better yet.
    for (let n = 0; n < 4; n++) await make();
    expect(world.stored).toHaveLength(4);
    world.succeeds();
    const whole = await make();
    expect(world.stored).toHaveLength(2);
    world.cannotVerify(error);
    const made: string[] = [];
    for (let n = 0; n < 130; n++) made.push(await make());
    expect(world.stored).toEqual([whole, ...made.slice(-2)]);
    expect(backups.history()).toMatchObject({
      latest: { kind: "backup", name: made.at(-1) as string, bytes: 9, error },
      verified: { [whole]: true },
    });
    expect(backups.figures()).toMatchObject({ hasFailed: true, failures: 134 });
    world.succeeds();
    await make();
    expect(world.stored).toHaveLength(2);
  });

  test.each([[48 * hour], [hour / 2]])("outlast one that was made while the clock was %d ms ahead", async (aheadMs) => {
    const world = createWorld({ cron: null, keep: 1 });
    const backups = world.open();
    world.succeeds();
    world.clock.step(aheadMs);
    backups.begin();
    await backups.whenIdle();
    world.clock.step(-aheadMs);
    world.clock.advance(1);
    backups.begin();
    await backups.whenIdle();
    expect(world.stored).toEqual([backupName(world.clock.now(), false)]);
    expect(backups.figures()?.verifiedAt).toBe(world.clock.now());
  });

  test("make room for each other only, whoever else keeps backups in the same place", async () => {
    const world = createWorld({ cron: null, keep: 1 });
    const others = [backupName(noon - 2 * hour, false), backupName(noon + 2 * hour, true)];
    world.stored.push(...others);
    const backups = world.open();
    world.succeeds();
    backups.begin();
    await backups.whenIdle();
    // This one is made as the server is stopped, which does not hear of it.
    world.clock.advance(hour);
    const unheard = backupName(world.clock.now(), false);
    world.hangs();
    backups.begin();
    await backups.stop();
    world.stored.push(unheard);
    const next = world.open();
    world.clock.advance(4 * hour);
    world.succeeds();
    next.begin();
    await next.whenIdle();
    expect(world.stored).toEqual([...others, backupName(world.clock.now(), false)]);
    await next.stop();
  });

  test("wait for nobody, and are left out while another one is made", async () => {
    const world = createWorld();
    const backups = world.open();
    world.hangs();
    backups.start();
    world.clock.advance(24 * hour);
    expect(backups.underWay()).toBe("backup");
    world.clock.advance(24 * hour);
    expect(world.commands).toHaveLength(1);
    expect(world.logged).toMatchObject([{ level: "warn", event: "backup.skipped", underWay: "backup" }]);
    await backups.stop();
  });

  test.each([
    ["", "The server was stopped before it had ended."],
    [
      "/backups/a was made, but not verified: the verification was stopped.\n",
      "The server was stopped meanwhile: /backups/a was made, but not verified: the verification was stopped.",
    ],
  ])("that a stop breaks off, with %j, have failed, and the next server knows it", async (said, error) => {
    const world = createWorld();
    const backups = world.open();
    world.hangs(said);
    backups.start();
    world.clock.advance(15 * hour);
    await backups.stop();
    expect(world.logged).toMatchObject([{ level: "error", event: "backup.failed", kind: "backup", error }]);
    expect(world.told).toEqual([`backup: ${error}`]);
    expect(world.commands).toHaveLength(1);
    const next = world.open();
    expect(next.history().latest).toEqual({
      ...{ kind: "backup", name: null, at: noon + 15 * hour, tookMs: 0, bytes: null, error },
    });
    expect(next.figures()).toMatchObject({ hasFailed: true, verifiedAt: null });
  });

  test("that cannot be begun are in the history", async () => {
    const world = createWorld();
    const backups = world.open();
    world.cannotRun();
    backups.begin();
    await backups.whenIdle();
    expect(backups.history().latest).toMatchObject({ kind: "backup", name: null, error: "no process left" });
    expect(backups.figures()).toMatchObject({ hasFailed: true, failures: 1, isUnderWay: false });
  });

  test("go by the clock, however it is set", async () => {
    const world = createWorld();
    const backups = world.open();
    world.succeeds();
    backups.start();
    world.clock.step(-10 * hour);
    world.clock.advance(15 * hour);
    await backups.whenIdle();
    expect(world.commands).toEqual([]);
    world.clock.advance(10 * hour);
    await backups.whenIdle();
    expect(world.commands).toHaveLength(1);
    await backups.stop();
  });

  test("end with the server even if their place never answers", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const list = () => {
      resolve();
      return new Promise<never>(() => {});
    };
    const world = createWorld({ openPlace: () => ({ ...world.place, list }) });
    const backups = world.open();
    world.succeeds();
    backups.begin();
    await asked;
    const listed = backups.list().catch(({ code }) => code);
    await backups.stop();
    expect(await listed).toBe("backups_unavailable");
    expect(world.open().history().latest).toMatchObject({
      name: world.stored[0] as string,
      error: "Older backups could not be removed: the server was stopped",
    });
  });

  describe("with a place that takes more than ten seconds to answer", () => {
    const silence = "/backups does not answer within 10 s. Try: check the network and POSTRIDER_BACKUP_URL.";

    test("are listed no longer than that, for all who ask at once", async () => {
      let asked = 0;
      const list = () => {
        asked += 1;
        return new Promise<never>(() => {});
      };
      const world = createWorld({ openPlace: () => ({ ...world.place, list }) });
      const backups = world.open();
      const lists = Promise.allSettled([backups.list(), backups.list()]);
      world.clock.advance(10_000);
      const refused = { status: "rejected", reason: { code: "backups_unavailable", message: silence } };
      expect(await lists).toMatchObject([refused, refused]);
      expect(asked).toBe(1);
      // The next one asks anew.
      void backups.list().catch(() => {});
      expect(asked).toBe(2);
      await backups.stop();
    });

    test("have failed when they make no room, and the next one is made", async () => {
      const { promise: asked, resolve } = Promise.withResolvers<void>();
      const remove = () => {
        resolve();
        return new Promise<never>(() => {});
      };
      const world = createWorld({ cron: null, keep: 1, openPlace: () => ({ ...world.place, remove }) });
      const backups = world.open();
      world.succeeds();
      backups.begin();
      await backups.whenIdle();
      world.clock.advance(hour);
      backups.begin();
      await asked;
      world.clock.advance(10_000);
      await backups.whenIdle();
      expect(backups.history().latest?.error).toBe(`Older backups could not be removed: ${silence}`);
      backups.begin();
      expect(backups.underWay()).toBe("backup");
      await backups.stop();
    });
  });

  test("cannot remove what their place does not let go, and say so", async () => {
    const world = createWorld({
      openPlace: () => ({ ...world.place, list: () => Promise.reject(new StartupError("gone")) }),
    });
    const backups = world.open();
    world.succeeds();
    backups.begin();
    await backups.whenIdle();
    const error = "Older backups could not be removed: gone";
    expect(world.logged.map(({ event }) => event)).toEqual(["backup.made", "backup.failed"]);
    expect(world.logged.at(-1)).toMatchObject({ event: "backup.failed", error });
    const name = world.stored[0] as string;
    // It is whole all the same.
    expect(backups.history()).toMatchObject({
      latest: { kind: "backup", name, bytes: 9, error },
      verified: { [name]: true },
    });
    expect(backups.figures()).toMatchObject({ hasFailed: true, verifiedAt: noon, failures: 1 });
    world.succeeds(false);
    backups.begin();
    await backups.whenIdle();
    expect(backups.history().latest?.error).toBe(`a page; ${error}`);
    expect(backups.figures()).toMatchObject({ failures: 2 });
    await expect(backups.list()).rejects.toMatchObject({ code: "backups_unavailable" });
  });
});

describe("backups that somebody asks for", () => {
  test("are one at a time", async () => {
    const world = createWorld({ cron: null });
    const backups = world.open();
    backups.start();
    expect(backups.nextAt()).toBeNull();
    world.hangs();
    backups.begin();
    expect(() => backups.begin()).toThrow("is being made or verified");
    expect(() => backups.beginVerification(backupName(noon, false))).toThrow("is being made or verified");
    await backups.stop();
    expect(() => backups.begin()).toThrow();
  });

  test("and are being verified when the server is stopped were not verified", async () => {
    const world = createWorld({ cron: null });
    const backups = world.open();
    world.hangs();
    const name = backupName(noon, false);
    backups.beginVerification(name);
    await backups.stop();
    const error = "The server was stopped before it had ended.";
    expect(world.open().history()).toMatchObject({ latest: { kind: "verify", name, error }, verified: {} });
  });

  test("are verified by their names, and remembered", async () => {
    const world = createWorld({ cron: null, url: "s3://backups/x" });
    const backups = world.open();
    world.succeeds(false);
    const name = backupName(noon, false);
    backups.beginVerification(name);
    await backups.whenIdle();
    expect(world.commands).toEqual([["backup", "verify", `s3://backups/x/${name}`, "--dir", "/data", "--json"]]);
    expect(backups.history()).toMatchObject({
      latest: { kind: "verify", error: "a page" },
      verified: { [name]: false },
    });
    world.fails("postrider: There is no room. Try: free up space.");
    backups.beginVerification(name);
    await backups.whenIdle();
    // That it cannot be read here does not say that it is not whole.
    expect(backups.history()).toMatchObject({ latest: { error: "There is no room. Try: free up space." } });
    expect(() => backups.beginVerification("../../etc/passwd")).toThrow("no backup of that name");
  });

  test("and are encrypted are not verified, since only their owner can open them", async () => {
    const world = createWorld({ cron: null, url: "s3://backups/x" });
    const backups = world.open();
    const name = backupName(noon, true);
    expect(() => backups.beginVerification(name)).toThrow(
      `Try: postrider backup verify s3://backups/x/${name} --identity`,
    );
    expect(world.commands).toEqual([]);
    expect(backups.figures()).toMatchObject({ hasFailed: false, failures: 0 });
  });

  test("with a command count like the server's own, but are not removed", async () => {
    const world = createWorld({ cron: null, keep: 1 });
    const backups = world.open();
    world.fails("postrider: There is no room.");
    backups.begin();
    await backups.whenIdle();
    const [whole, damaged] = [backupName(noon - 2, false), backupName(noon - 1, false)];
    world.stored.push(whole, damaged);
    await backups.noteMade(whole, { tookMs: 5, faults: [] });
    expect(backups.figures()).toMatchObject({
      hasFailed: false,
      verifiedAt: noon - 2,
      bytes: 9,
      tookMs: 5,
      failures: 1,
    });
    await backups.noteMade(damaged, { tookMs: 5, faults: ["a page", "a row"] });
    expect(backups.figures()).toMatchObject({ hasFailed: true, verifiedAt: noon - 2, failures: 2 });
    expect(world.told.at(-1)).toBe("backup: a page; a row");
    await expect(backups.noteMade(backupName(noon + 2, false), { tookMs: 5, faults: null })).rejects.toMatchObject({
      code: "backup_not_found",
    });
    world.clock.advance(hour);
    world.succeeds();
    backups.begin();
    await backups.whenIdle();
    expect(world.stored).toHaveLength(3);
  });

  test.each([
    ["before", false],
    ["while", true],
  ])("with a command leave the server its own, if that begins %s they are looked for", async (_, isLate) => {
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const world = createWorld({
      cron: null,
      keep: 1,
      openPlace: () => ({
        ...world.place,
        async list(now) {
          const found = await world.place.list(now);
          asked.resolve();
          await answered.promise;
          return found;
        },
      }),
    });
    const backups = world.open();
    const byCommand = backupName(noon - 1, false);
    const own = backupName(noon, false);
    const ended = Promise.withResolvers<void>();
    world.succeeds();
    world.waitsFor(ended.promise);
    world.stored.push(byCommand);
    if (!isLate) backups.begin();
    const noted = backups.noteMade(byCommand, { tookMs: 5, faults: [] });
    await asked.promise;
    if (isLate) backups.begin();
    answered.resolve();
    await noted;
    ended.resolve();
    await backups.whenIdle();
    expect(backups.history().made).toEqual([own]);
    // It makes room for the next one.
    world.clock.advance(hour);
    backups.begin();
    await backups.whenIdle();
    expect(world.stored).toEqual([byCommand, backupName(noon + hour, false)]);
  });

  test("need a place", async () => {
    const backups = createWorld({ url: null, cron: null }).open();
    expect(() => backups.begin()).toThrow("POSTRIDER_BACKUP_URL");
    expect(await backups.list()).toEqual([]);
    expect(backups.figures()).toBeNull();
  });
});
