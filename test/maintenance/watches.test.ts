import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/lib/log.ts";
import { createDescriptorWatch } from "../../src/maintenance/descriptor-watch.ts";
import { createDiskWatch } from "../../src/maintenance/disk-watch.ts";
import { createIdClockWatch } from "../../src/maintenance/id-clock-watch.ts";
import { createStorageWatch } from "../../src/maintenance/storage-watch.ts";
import { DatabaseWentBack, DeadlinePassed } from "../../src/store/postgres/faults.ts";
import { createFakeClock } from "../support/fake-clock.ts";

type Line = Record<string, unknown> & { event: string; level: string };

function recordLog() {
  const clock = createFakeClock();
  const lines: Line[] = [];
  const log = createLog({
    level: "info",
    format: "json",
    now: clock.now,
    out: (text) => void lines.push(JSON.parse(text)),
  });
  return { clock, log, lines, events: () => lines.map(({ event }) => event) };
}

describe("the floor of the disk", () => {
  const mib = 2 ** 20;

  function setUp(minFreeBytes = 256 * mib) {
    const recorded = recordLog();
    const disk = { free: 1000 * mib, readings: 0 };
    /** Who is told that it is low. */
    const told: unknown[] = [];
    const watch = createDiskWatch({
      ...recorded,
      folder: "/",
      minFreeBytes,
      onLow: (figures) => told.push(figures),
      freeBytesOf: () => {
        disk.readings += 1;
        return disk.free;
      },
    });
    const ask = () => {
      recorded.clock.advance(1000);
      return watch.hasRoom();
    };
    return { ...recorded, disk, watch, ask, told };
  }

  test("says whether the disk is low, without counting that as a refusal", () => {
    const { clock, disk, watch, lines } = setUp();
    expect(watch.isLow()).toBe(false);
    disk.free = 255 * mib;
    clock.advance(10_000);
    expect(watch.isLow()).toBe(true);
    disk.free = 256 * mib;
    clock.advance(10_000);
    expect(watch.isLow()).toBe(false);
    expect(lines.at(-1)).toMatchObject({ event: "disk.enough", refused: 0 });
    expect(setUp(0).watch.isLow()).toBe(false);
  });

  test("is told of when it is crossed, both ways, with its figures and what was refused", () => {
    const { clock, lines, disk, ask, watch, told } = setUp();
    expect([ask(), lines]).toEqual([true, []]);
    disk.free = 255 * mib;
    expect(ask()).toBe(false);
    for (let i = 0; i < 197; i++) watch.hasRoom();
    expect(told).toEqual([{ freeBytes: 255 * mib, floorBytes: 256 * mib }]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: "warn",
      event: "disk.low",
      freeBytes: 255 * mib,
      floorBytes: 256 * mib,
    });
    clock.advance(10_000);
    disk.free = 300 * mib;
    expect(ask()).toBe(true);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({ level: "info", event: "disk.enough", freeBytes: 300 * mib, refused: 198 });
  });

  test("a disk that hovers at it is told of at most every ten seconds", () => {
    const { disk, ask, events } = setUp();
    for (let second = 0; second < 100; second++) {
      disk.free = second % 2 === 0 ? 255 * mib : 257 * mib;
      ask();
    }
    expect(events().length).toBeLessThanOrEqual(11);
  });

  test("without a floor nothing is read for it", () => {
    const { disk, ask, lines } = setUp(0);
    disk.free = 0;
    expect([ask(), disk.readings, lines]).toEqual([true, 0, []]);
  });
});

describe("a storage that fails", () => {
  function setUp() {
    const recorded = recordLog();
    const counted: string[] = [];
    const watch = createStorageWatch({ ...recorded, onFailure: (errorClass) => void counted.push(errorClass) });
    const fail = (code: string, operation = "commit") =>
      watch.failed({ operation, error: Object.assign(new Error(`${code} happened`), { code }) });
    return { ...recorded, watch, fail, counted };
  }

  test("is one line with the operation, SQLite's code and message, and one when it is over with the count", () => {
    const { clock, lines, watch, fail, counted } = setUp();
    for (let i = 0; i < 198; i++) fail("SQLITE_FULL", "write");
    clock.advance(60_000);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: "warn",
      event: "storage.failed",
      operation: "write",
      code: "SQLITE_FULL",
      message: "SQLITE_FULL happened",
    });
    watch.committed();
    clock.advance(20_000);
    expect(lines[1]).toMatchObject({ event: "storage.recovered", failures: 198 });
    expect(counted).toHaveLength(198);
    expect(clock.timers).toBe(0);
  });

  test("small writes that pass meanwhile do not end it", () => {
    const { clock, events, watch, fail } = setUp();
    for (let second = 0; second < 60; second++) {
      fail("SQLITE_FULL");
      watch.committed();
      clock.advance(1000);
    }
    expect(events()).toEqual(["storage.failed"]);
    clock.advance(10_000);
    expect(events()).toEqual(["storage.failed", "storage.recovered"]);
  });

  test.each(["SQLITE_IOERR_FSYNC", "SQLITE_CORRUPT", "SQLITE_READONLY", "SQLITE_NOTADB"])(
    "%s within an episode has its own line, and is an error",
    (code) => {
      const { lines, fail } = setUp();
      fail("SQLITE_FULL");
      fail(code);
      fail(code);
      expect(lines.map(({ level, code: told }) => [level, told])).toEqual([
        ["warn", "SQLITE_FULL"],
        ["error", code],
      ]);
    },
  );

  test("an index of the log that cannot grow is a full disk, not a broken one", () => {
    const { lines, fail, counted } = setUp();
    fail("SQLITE_IOERR_SHMSIZE");
    expect([counted, lines.map(({ level }) => level)]).toEqual([["full"], ["warn"]]);
  });

  test.each<[code: string, errorClass: string, level: string]>([
    ["53100", "full", "warn"],
    ["53300", "busy", "warn"],
    ["57014", "busy", "warn"],
    ["57P01", "unreachable", "warn"],
    ["25P04", "busy", "warn"],
    ["25006", "readonly", "error"],
    ["42501", "readonly", "error"],
    ["58030", "ioerr", "error"],
    ["XX001", "corrupt", "error"],
  ])("PostgreSQL's %s is counted as %s", (sqlState, errorClass, level) => {
    const { lines, watch, counted } = setUp();
    const error = Object.assign(new Error("it happened"), { code: "ERR_POSTGRES_SERVER_ERROR", errno: sqlState });
    watch.failed({ operation: "statement", error });
    expect([counted, lines]).toMatchObject([[errorClass], [{ level, code: sqlState, operation: "statement" }]]);
  });

  test("a server that nobody answers at is one, by whatever the client says", () => {
    const { watch, fail, counted } = setUp();
    for (const how of ["REFUSED", "CLOSED", "TIMEOUT"]) fail(`ERR_POSTGRES_CONNECTION_${how}`, "heartbeat");
    watch.failed({ operation: "statement", error: new DeadlinePassed("no answer for 12 s") });
    for (const code of ["CERT_HAS_EXPIRED", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "EPROTO"]) fail(code, "statement");
    expect(counted).toEqual(Array(7).fill("unreachable"));
  });

  test("a database that has gone back is one, and a line of its own with what to do", () => {
    const { lines, watch, fail, counted } = setUp();
    fail("ERR_POSTGRES_CONNECTION_CLOSED", "heartbeat");
    watch.failed({ operation: "heartbeat", error: new DatabaseWentBack() });
    expect(counted).toEqual(Array(2).fill("unreachable"));
    expect(lines.at(-1)).toMatchObject({ code: "DatabaseWentBack", message: expect.stringMatching(/ Try: set /) });
  });

  test("a defect of ours is none, nor are transactions in each other's way", () => {
    const { lines, watch, fail, counted } = setUp();
    fail("SQLITE_CONSTRAINT_UNIQUE");
    for (const errno of ["23505", "40P01", "55P03"]) {
      watch.failed({ operation: "statement", error: Object.assign(new Error("no"), { errno }) });
    }
    watch.failed({ operation: "write", error: new Error("a defect") });
    expect([lines, counted]).toEqual([[], []]);
  });
});

describe("descriptors that run short", () => {
  function setUp(limit = 1000) {
    const recorded = recordLog();
    const table = { open: 20, idle: 0, asked: [] as number[] };
    const watch = createDescriptorWatch({
      ...recorded,
      count: () => ({ open: table.open, limit }),
      lowestFree: () => table.open,
      shed(count) {
        table.asked.push(count);
        const closed = Math.min(count, table.idle);
        table.open -= closed;
        table.idle -= closed;
        return closed;
      },
    });
    watch.start();
    return { ...recorded, table, watch };
  }

  test("connections that do nothing are closed until twice the reserve is free, told of once and when it is over", () => {
    const { clock, lines, table, watch } = setUp();
    clock.advance(10_000);
    expect(table.asked).toEqual([]);
    watch.noteRequest();
    table.open = 990;
    table.idle = 900;
    clock.advance(250);
    // A reserve of 250, and twice that is made free.
    expect(table.asked).toEqual([490]);
    expect(table.open).toBe(500);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: "warn", event: "descriptors.short", limit: 1000, closed: 490 });
    clock.advance(11_000);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({ event: "descriptors.enough", closed: 490 });
    watch.stop();
    expect(clock.timers).toBe(0);
  });

  test("a flood that goes on is one episode", () => {
    const { clock, events, table, watch } = setUp();
    watch.noteRequest();
    for (let i = 0; i < 100; i++) {
      table.open = 990;
      table.idle = 900;
      clock.advance(250);
    }
    expect(events()).toEqual(["descriptors.short"]);
    expect(table.asked).toHaveLength(100);
    watch.stop();
  });

  test.each([
    [1_000_000, 30_000, 30_000],
    [20_000, 2_000, 8_000],
    [2_400, 250, 1_000],
  ])("are looked for when %i are free, every %i ms, and at rest every %i ms", (free, everyMs, atRestMs) => {
    for (const [isUsed, pauseMs] of [
      [true, everyMs],
      [false, atRestMs],
    ] as const) {
      const limit = 2_000_000;
      const { clock, table, watch } = setUp(limit);
      table.open = limit - free;
      if (isUsed) watch.noteRequest();
      // Of a million, as it starts.
      clock.advance(30_000);
      table.open = limit - 10;
      clock.advance(pauseMs - 1);
      expect(table.asked).toEqual([]);
      clock.advance(1);
      expect(table.asked).toHaveLength(1);
      watch.stop();
      expect(clock.timers).toBe(0);
    }
  });

  test("are looked for without a rest as soon as there are few", () => {
    const { clock, table, watch } = setUp();
    table.open = 990;
    clock.advance(1_000);
    expect(table.asked).toHaveLength(1);
    expect(clock.nextTimerMs).toBe(250);
    watch.stop();
  });

  test("are looked for sooner as soon as a request ends the rest, and at rest again when none has come", () => {
    const limit = 2_000_000;
    const { clock, table, watch } = setUp(limit);
    table.open = limit - 20_000;
    clock.advance(30_000);
    clock.advance(1_000);
    watch.noteRequest();
    expect(clock.nextTimerMs).toBe(2_000);
    clock.advance(1_000);
    // Not put off by the next one.
    watch.noteRequest();
    expect(clock.nextTimerMs).toBe(1_000);
    clock.advance(1_000);
    expect(clock.nextTimerMs).toBe(2_000);
    clock.advance(2_000);
    expect(clock.nextTimerMs).toBe(8_000);
    watch.stop();
    watch.noteRequest();
    expect(clock.timers).toBe(0);
  });

  test("where the system does not tell, nothing is done", () => {
    const { clock, log } = recordLog();
    const watch = createDescriptorWatch({ clock, log, count: () => null, shed: () => 0 });
    watch.start();
    expect(clock.timers).toBe(0);
    watch.stop();
  });
});

test("ids that are ahead of the clock are told of once, until when, and when the clock has caught up", () => {
  const { clock, log, lines } = recordLog();
  const look = createIdClockWatch(log, clock.now);
  const dayMs = 86_400_000;
  for (const aheadMs of [0, 5, 3_599_999, 40 * dayMs, 39 * dayMs, 1000, 0, 0]) look(aheadMs);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatchObject({ level: "warn", event: "clock.behind_ids", until: "2026-04-10T12:00:00.000Z" });
  expect(lines[1]?.event).toBe("clock.caught_up");
});
