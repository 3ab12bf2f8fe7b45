import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { StreamLog, Tail } from "../../../src/store/stream-log.ts";

export interface StreamLogUnderTest {
  readonly log: StreamLog;
  end(): Promise<void>;
}

/** What `src/store/stream-log.ts` says, for any log. */
export function streamLogContract(name: string, open: () => Promise<StreamLogUnderTest>): void {
  describe(`${name} of messages`, () => {
    let opened: StreamLogUnderTest;
    let log: StreamLog;
    beforeEach(async () => {
      opened = await open();
      log = opened.log;
    });
    afterEach(() => opened.end());

    const append = (tenantId: string, ...ns: number[]) => {
      for (const n of ns) log.append(tenantId, "event.accepted", () => ({ n }));
    };
    async function watch(tenantId: string): Promise<Tail> {
      const tail = log.watch(tenantId, () => {});
      await tail.ready();
      return tail;
    }
    /** All messages that can be read, from a position on. */
    function readNow(tail: Tail, from = tail.first) {
      let text = "";
      for (let position = from; position < tail.end; ) {
        const { bytes, next } = tail.chunkFrom(position);
        text += new TextDecoder().decode(bytes);
        position = next;
      }
      return [...text.matchAll(/event: (.+)\nid: (.+)\ndata: (.+)\n\n/g)].map(([, kind, id = "", data = ""]) => ({
        kind,
        id,
        n: JSON.parse(data).n as number,
      }));
    }
    const numbersNow = (tail: Tail, from?: number) => readNow(tail, from).map(({ n }) => n);
    /** With all that was appended. */
    async function read(tail: Tail) {
      await tail.ready();
      return readNow(tail);
    }
    const numbersOf = async (tail: Tail) => (await read(tail)).map(({ n }) => n);
    async function after(tail: Tail, id: string) {
      await tail.ready();
      const position = tail.positionAfter(id);
      return position === null ? null : numbersNow(tail, position);
    }
    const many = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

    test("makes nothing for a tenant that nobody watches, nor for one that is forgotten", async () => {
      let asked = 0;
      const ask = () => ({ n: ++asked });
      await watch("other");
      log.append("t", "event.accepted", ask);
      (await watch("t")).forget();
      log.append("t", "event.accepted", ask);
      // A log may write later what was appended; by the time it has taken this one, it would have asked.
      const tail = await watch("t");
      expect(await numbersOf(tail)).toEqual([]);
      log.append("t", "event.accepted", ask);
      expect(await numbersOf(tail)).toEqual([1]);
    });

    test("keeps what a watched tenant says, in its order, and what no other says", async () => {
      const [tail, other] = [await watch("t"), await watch("other")];
      for (const n of many(0, 50)) append(n % 2 === 0 ? "t" : "other", n);
      expect(await numbersOf(tail)).toEqual(many(0, 50).filter((n) => n % 2 === 0));
      expect(await numbersOf(other)).toEqual(many(0, 50).filter((n) => n % 2 === 1));
      expect((await read(tail))[0]?.kind).toBe("event.accepted");
    });

    test("tells of each message once it can be read", async () => {
      const seen: number[][] = [];
      const tail: Tail = log.watch("t", () => seen.push(numbersNow(tail)));
      await tail.ready();
      append("t", 1);
      await tail.ready();
      append("t", 2);
      append("other", 3);
      await tail.ready();
      expect(seen).toEqual([[1], [1, 2]]);
    });

    test("adds nothing when the data cannot be gathered, and says so", async () => {
      const tail = await watch("t");
      append("t", 1);
      expect(() =>
        log.append("t", "event.accepted", () => {
          throw new Error("broken");
        }),
      ).toThrow("broken");
      append("t", 2);
      expect(await numbersOf(tail)).toEqual([1, 2]);
    });

    test("gives each message an id of its own, of two numbers, from which it goes on", async () => {
      const tail = await watch("t");
      append("t", 1, 2, 3);
      const ids = (await read(tail)).map(({ id }) => id);
      expect(new Set(ids).size).toBe(3);
      for (const id of ids) expect(id).toMatch(/^\d+-\d+$/);
      expect(await Promise.all(ids.map((id) => after(tail, id)))).toEqual([[2, 3], [3], []]);
    });

    test("gives an id of the end, whatever was said before and after", async () => {
      const tail = await watch("t");
      const fromStart = tail.endId();
      append("t", 1);
      await tail.ready();
      const fromOne = tail.endId();
      append("t", 2);
      await tail.ready();
      const fromTwo = tail.endId();
      expect(await after(tail, fromStart)).toEqual([1, 2]);
      expect(await after(tail, fromOne)).toEqual([2]);
      expect(await after(tail, fromTwo)).toEqual([]);
    });

    test.each(["", "x", "1-1", "0x1-2", "99999999999999999999-1"])("does not know the id %p", async (id) => {
      const tail = await watch("t");
      append("t", 1);
      await tail.ready();
      expect(tail.positionAfter(id)).toBeNull();
    });

    test("does not know an id of the future", async () => {
      const tail = await watch("t");
      const [epoch, number] = tail.endId().split("-");
      expect(tail.positionAfter(`${epoch}-${Number(number) + 10}`)).toBeNull();
    });

    test("does not go on across a time in which nothing was kept", async () => {
      const before = await watch("t");
      append("t", 1);
      await before.ready();
      const id = before.endId();
      before.forget();
      append("t", 2);
      const tail = await watch("t");
      append("t", 3);
      expect(await after(tail, id)).toBeNull();
      expect(await numbersOf(tail)).toEqual([3]);
      // What was left behind does no harm to what came in its place.
      before.forget();
      append("t", 4);
      expect(await numbersOf(tail)).toEqual([3, 4]);
    });

    test("keeps the latest 1,000 messages; what was before them is lost, and known to be", async () => {
      const tail = await watch("t");
      append("t", ...many(0, 2));
      const [first, second] = (await read(tail)).map(({ id }) => id);
      append("t", ...many(2, 1_002));
      await tail.ready();
      expect(tail.first).toBe(tail.end - 1_000);
      expect(await after(tail, second ?? "")).toEqual(many(2, 1_002));
      expect(tail.positionAfter(first ?? "")).toBeNull();
    });

    test("keeps 64 MiB of all tenants' messages: who keeps most gives way, and who has left counts no more", async () => {
      const mebibyte = "x".repeat(2 ** 20 - 300);
      /** Tenants that keep 4 MiB each. */
      async function fill(from: number, to: number) {
        const tails: Tail[] = [];
        for (const tenant of many(from, to)) {
          const tail = await watch(`t${tenant}`);
          for (const n of many(0, 4)) log.append(`t${tenant}`, "event.accepted", () => ({ n, mebibyte }));
          await tail.ready();
          tails.push(tail);
        }
        return tails;
      }
      const keptBy = (tails: readonly Tail[]) => tails.reduce((sum, { first, end }) => sum + end - first, 0);

      const small = await watch("small");
      append("small", 1, 2);
      const first = await fill(0, 8);
      expect(keptBy(first)).toBe(32);
      for (const tail of first) tail.forget();
      const second = await fill(8, 23);
      expect(keptBy(second)).toBe(60);
      const third = await fill(23, 25);
      expect(keptBy([...second, ...third])).toBeLessThanOrEqual(64);
      expect(await numbersOf(small)).toEqual([1, 2]);
    });
  });
}
