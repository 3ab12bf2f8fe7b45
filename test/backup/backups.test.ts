import { describe, expect, test } from "bun:test";
import { backupName } from "../../src/backup/place.ts";
import { StartupError } from "../../src/domain/errors.ts";
import { createBackupsWorld, hourMs, noon } from "./backups-world.ts";

describe("backups by schedule", () => {
  test("are made at their times, verified, and make room for each other", async () => {
    const world = createBackupsWorld();
    const backups = world.open();
    world.succeeds();
    backups.start();
    expect(backups.nextAt()).toBe(noon + 15 * hourMs);
    world.clock.advance(14 * hourMs);
    expect(world.commands).toEqual([]);
    for (let day = 0; day < 4; day++) {
      world.clock.advance(24 * hourMs);
      await backups.whenIdle();
    }
    const first = `/backups/${backupName(noon + 15 * hourMs, false)}`;
    expect(world.commands[0]).toEqual(["backup", first, "--verify", "--dir", "/data", "--json"]);
    expect(world.targets[0]).toBe("/backups");
    expect(world.commands).toHaveLength(4);
    expect(world.stored).toHaveLength(2);
    expect(world.logged.map(({ event }) => event).filter((event) => event === "backup.made")).toHaveLength(4);
    expect(backups.figures()).toMatchObject({ hasFailed: false, failures: 0, bytes: 9, isUnderWay: false });
    // A server that starts again knows it.
    expect(world.open().figures()?.verifiedAt).toBe(backups.figures()?.verifiedAt as number);
    await backups.stop();
    world.clock.advance(48 * hourMs);
    expect(world.commands).toHaveLength(4);
  });

  test("that fail are logged once each with their cause, and take nothing away", async () => {
    const world = createBackupsWorld();
    const backups = world.open();
    world.succeeds();
    backups.start();
    for (let day = 0; day < 2; day++) {
      world.clock.advance(24 * hourMs);
      await backups.whenIdle();
    }
    const whole = [...world.stored];
    world.fails("something else\npostrider: The backup cannot be written. Try: free up space on its disk.\n");
    world.clock.advance(24 * hourMs);
    await backups.whenIdle();
    world.succeeds(false);
    for (let day = 0; day < 3; day++) {
      world.clock.advance(24 * hourMs);
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
    const world = createBackupsWorld({ cron: null });
    const backups = world.open();
    const make = async () => {
      world.clock.advance(hourMs);
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

  test.each([[48 * hourMs], [hourMs / 2]])(
    "outlast one that was made while the clock was %d ms ahead",
    async (aheadMs) => {
      const world = createBackupsWorld({ cron: null, keep: 1 });
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
    },
  );

  test("make room for each other only, whoever else keeps backups in the same place", async () => {
    const world = createBackupsWorld({ cron: null, keep: 1 });
    const others = [backupName(noon - 2 * hourMs, false), backupName(noon + 2 * hourMs, true)];
    world.stored.push(...others);
    const backups = world.open();
    world.succeeds();
    backups.begin();
    await backups.whenIdle();
    // This one is made as the server is stopped, which does not hear of it.
    world.clock.advance(hourMs);
    const unheard = backupName(world.clock.now(), false);
    world.hangs();
    backups.begin();
    await backups.stop();
    world.stored.push(unheard);
    const next = world.open();
    world.clock.advance(4 * hourMs);
    world.succeeds();
    next.begin();
    await next.whenIdle();
    expect(world.stored).toEqual([...others, backupName(world.clock.now(), false)]);
    await next.stop();
  });

  test("wait for nobody, and are left out while another one is made", async () => {
    const world = createBackupsWorld();
    const backups = world.open();
    world.hangs();
    backups.start();
    world.clock.advance(24 * hourMs);
    expect(backups.underWay()).toBe("backup");
    world.clock.advance(24 * hourMs);
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
    const world = createBackupsWorld();
    const backups = world.open();
    world.hangs(said);
    backups.start();
    world.clock.advance(15 * hourMs);
    await backups.stop();
    expect(world.logged).toMatchObject([{ level: "error", event: "backup.failed", kind: "backup", error }]);
    expect(world.told).toEqual([`backup: ${error}`]);
    expect(world.commands).toHaveLength(1);
    const next = world.open();
    expect(next.history().latest).toEqual({
      ...{ kind: "backup", name: null, at: noon + 15 * hourMs, tookMs: 0, bytes: null, error },
    });
    expect(next.figures()).toMatchObject({ hasFailed: true, verifiedAt: null });
  });

  test("that cannot be begun are in the history", async () => {
    const world = createBackupsWorld();
    const backups = world.open();
    world.cannotRun();
    backups.begin();
    await backups.whenIdle();
    expect(backups.history().latest).toMatchObject({ kind: "backup", name: null, error: "no process left" });
    expect(backups.figures()).toMatchObject({ hasFailed: true, failures: 1, isUnderWay: false });
  });

  test("go by the clock, however it is set", async () => {
    const world = createBackupsWorld();
    const backups = world.open();
    world.succeeds();
    backups.start();
    world.clock.step(-10 * hourMs);
    world.clock.advance(15 * hourMs);
    await backups.whenIdle();
    expect(world.commands).toEqual([]);
    world.clock.advance(10 * hourMs);
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
    const world = createBackupsWorld({ openPlace: () => ({ ...world.place, list }) });
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
      const world = createBackupsWorld({ openPlace: () => ({ ...world.place, list }) });
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
      const world = createBackupsWorld({ cron: null, keep: 1, openPlace: () => ({ ...world.place, remove }) });
      const backups = world.open();
      world.succeeds();
      backups.begin();
      await backups.whenIdle();
      world.clock.advance(hourMs);
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
    const world = createBackupsWorld({
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
