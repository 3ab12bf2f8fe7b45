import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Thread } from "../../../src/lib/threads.ts";
import { isDamage } from "../../../src/store/sqlite/damage.ts";
import { databaseFile, openDatabase } from "../../../src/store/sqlite/open.ts";
import { createReader, type ReaderMessage } from "../../../src/store/sqlite/reader.ts";
import { overwritePages, pagesOf } from "../../support/damaged-database.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { refusalOf } from "../../support/store-factory.ts";

const sqlite = useSqlite();

describe("the reader", () => {
  const ask = (reader: ReturnType<typeof createReader>) =>
    reader.run("countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });

  test("answers, and says what went wrong", async () => {
    const { path } = await sqlite.store();
    const reader = createReader(path);
    sqlite.cleanUpFirst(() => reader.close());
    expect(await Promise.all([ask(reader), ask(reader)])).toEqual([0, 0]);
    const nonsense = reader.run("nonsense" as "countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });
    expect(await nonsense.catch((error: Error) => error.message)).toContain("not a function");
    expect(await ask(reader)).toBe(0);
  });

  test("tells damage from other failures", async () => {
    const dataDir = sqlite.emptyDir();
    openDatabase({ dataDir }).close();
    overwritePages(dataDir, pagesOf(dataDir, "delivery_by_tenant", "leaf"));
    const reader = createReader(join(dataDir, databaseFile));
    sqlite.cleanUpFirst(() => reader.close());
    const error = await ask(reader).catch((error: unknown) => error);
    expect([isDamage(error), error]).toEqual([true, expect.objectContaining({ code: "SQLITE_CORRUPT" })]);
    const nonsense = reader.run("nonsense" as "countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });
    expect(isDamage(await nonsense.catch((error: unknown) => error))).toBe(false);
  });

  test("ends with the store; what it is asked from then on is unavailable", async () => {
    const { path } = await sqlite.store();
    const reader = createReader(path);
    const last = ask(reader);
    await Promise.all([reader.close(), reader.close()]);
    expect(await last).toBe(0);
    expect(await refusalOf(ask(reader))).toBe("unavailable shutting_down");
  });

  describe("lets accounts take turns:", () => {
    /** A reader whose thread answers when it is told to. */
    function slowReader() {
      const arrived: ReaderMessage[] = [];
      const thread = {
        onmessage: null as unknown as (event: { data: unknown }) => void,
        postMessage: (message: ReaderMessage) => void (message.kind === "open" || arrived.push(message)),
        ref() {},
        unref() {},
      };
      const reader = createReader("", () => thread as unknown as Thread);
      /** Answers the first, and lets what waited for that go on. */
      async function answerFirst(): Promise<void> {
        const first = arrived.shift();
        if (first && "id" in first) thread.onmessage({ data: { id: first.id, result: 0 } });
        await new Promise((resolve) => setImmediate(resolve));
      }
      return { reader, arrived, answerFirst };
    }
    const of = (tenantKey: number) => ({ tenantKey, fromSeq: 0, toSeq: 1 });

    test("one that asks for a hundred lists at once holds up another by those under way", async () => {
      const { reader, answerFirst } = slowReader();
      const ended: number[] = [];
      for (let i = 0; i < 100; i += 1) void reader.run("countEvents", of(1)).then(() => ended.push(1));
      const asked = [
        reader.run("pagePlaces", { filter: of(2), offset: 0, limit: 1 }),
        reader.run("queueDepth", undefined),
      ];
      let isAnswered = false;
      void Promise.all(asked).then(() => {
        isAnswered = true;
      });
      for (let i = 0; i < 6; i += 1) await answerFirst();
      expect([isAnswered, ended.length]).toEqual([true, 4]);
    });

    test("one whose client has gone by its turn is not sent", async () => {
      const { reader, arrived, answerFirst } = slowReader();
      let hasGone = false;
      const list = () => reader.runFor(() => hasGone)("countEvents", of(1));
      const asked = [list(), list(), list(), list()].map(refusalOf);
      hasGone = true;
      for (let i = 0; i < 2; i += 1) await answerFirst();
      expect(await Promise.all(asked)).toEqual([
        ...["fulfilled", "fulfilled"],
        ...["invalid request_abandoned", "invalid request_abandoned"],
      ]);
      expect(arrived).toEqual([]);
    });

    test("a checkpoint waits for none that has not reached the thread", async () => {
      const { reader, arrived } = slowReader();
      for (let i = 0; i < 100; i += 1) void reader.run("countEvents", of(1));
      void reader.checkpoint();
      expect(arrived.map(({ kind }) => kind)).toEqual(["query", "query", "checkpoint"]);
    });
  });
});
