import { describe, expect, test } from "bun:test";
import { backupName } from "../../src/backup/place.ts";
import { createBackupsWorld, hourMs, noon } from "./backups-world.ts";

describe("backups that somebody asks for", () => {
  test("are one at a time", async () => {
    const world = createBackupsWorld({ cron: null });
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
    const world = createBackupsWorld({ cron: null });
    const backups = world.open();
    world.hangs();
    const name = backupName(noon, false);
    backups.beginVerification(name);
    await backups.stop();
    const error = "The server was stopped before it had ended.";
    expect(world.open().history()).toMatchObject({ latest: { kind: "verify", name, error }, verified: {} });
  });

  test("are verified by their names, and remembered", async () => {
    const world = createBackupsWorld({ cron: null, url: "s3://backups/x" });
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
    const world = createBackupsWorld({ cron: null, url: "s3://backups/x" });
    const backups = world.open();
    const name = backupName(noon, true);
    expect(() => backups.beginVerification(name)).toThrow(
      `Try: postrider backup verify s3://backups/x/${name} --identity`,
    );
    expect(world.commands).toEqual([]);
    expect(backups.figures()).toMatchObject({ hasFailed: false, failures: 0 });
  });

  test("with a command count like the server's own, but are not removed", async () => {
    const world = createBackupsWorld({ cron: null, keep: 1 });
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
    world.clock.advance(hourMs);
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
    const world = createBackupsWorld({
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
    world.clock.advance(hourMs);
    backups.begin();
    await backups.whenIdle();
    expect(world.stored).toEqual([byCommand, backupName(noon + hourMs, false)]);
  });

  test("need a place", async () => {
    const backups = createBackupsWorld({ url: null, cron: null }).open();
    expect(() => backups.begin()).toThrow("POSTRIDER_BACKUP_URL");
    expect(await backups.list()).toEqual([]);
    expect(backups.figures()).toBeNull();
  });
});
