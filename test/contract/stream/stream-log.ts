import { beforeEach, describe, expect, test } from "bun:test";
import type { StreamLog, Tail } from "../../../src/stream/stream-log.ts";

/** What `src/stream/stream-log.ts` says, for any log. */
export function streamLogContract(name: string, open: () => StreamLog): void {
  describe(`${name} of messages`, () => {
    let log: StreamLog;
    beforeEach(() => {
      log = open();
    });

    const append = (tenantId: string, ...ns: number[]) => {
      for (const n of ns) log.append(tenantId, "event.accepted", () => ({ n }));
    };
    const watch = (tenantId: string) => log.watch(tenantId, () => {});
    /** All messages from a position on. */
    function read(tail: Tail, from = tail.first) {
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
    const numbersOf = (tail: Tail, from?: number) => read(tail, from).map(({ n }) => n);
    const after = (tail: Tail, id: string) => {
      const position = tail.positionAfter(id);
      return position === null ? null : numbersOf(tail, position);
    };
    const many = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

    test("makes nothing for a tenant that nobody watches, nor for one that is forgotten", () => {
      const asked = () => {
        throw new Error("asked");
      };
      watch("other");
      log.append("t", "event.accepted", asked);
      watch("t").forget();
      log.append("t", "event.accepted", asked);
    });

    test("keeps what a watched tenant says, in its order, and what no other says", () => {
      const [tail, other] = [watch("t"), watch("other")];
      for (const n of many(0, 50)) append(n % 2 === 0 ? "t" : "other", n);
      expect(numbersOf(tail)).toEqual(many(0, 50).filter((n) => n % 2 === 0));
      expect(numbersOf(other)).toEqual(many(0, 50).filter((n) => n % 2 === 1));
      expect(read(tail)[0]?.kind).toBe("event.accepted");
    });

    test("tells of each message once it can be read", () => {
      const seen: number[][] = [];
      const tail: Tail = log.watch("t", () => seen.push(numbersOf(tail)));
      append("t", 1);
      append("t", 2);
      append("other", 3);
      expect(seen).toEqual([[1], [1, 2]]);
    });

    test("adds nothing when the data cannot be gathered, and says so", () => {
      const tail = watch("t");
      append("t", 1);
      expect(() =>
        log.append("t", "event.accepted", () => {
          throw new Error("broken");
        }),
      ).toThrow("broken");
      append("t", 2);
      expect(numbersOf(tail)).toEqual([1, 2]);
    });

    test("gives each message an id of its own, of two numbers, from which it goes on", () => {
      const tail = watch("t");
      append("t", 1, 2, 3);
      const ids = read(tail).map(({ id }) => id);
      expect(new Set(ids).size).toBe(3);
      for (const id of ids) expect(id).toMatch(/^\d+-\d+$/);
      expect(ids.map((id) => after(tail, id))).toEqual([[2, 3], [3], []]);
    });

    test("gives an id of the end, whatever was said before and after", () => {
      const tail = watch("t");
      const fromStart = tail.endId();
      append("t", 1);
      const fromOne = tail.endId();
      append("t", 2);
      expect([after(tail, fromStart), after(tail, fromOne), after(tail, tail.endId())]).toEqual([[1, 2], [2], []]);
    });

    test.each(["", "x", "1-1", "0x1-2", "99999999999999999999-1"])("does not know the id %p", (id) => {
      const tail = watch("t");
      append("t", 1);
      expect(tail.positionAfter(id)).toBeNull();
    });

    test("does not know an id of the future", () => {
      const tail = watch("t");
      const [epoch, number] = tail.endId().split("-");
      expect(tail.positionAfter(`${epoch}-${Number(number) + 10}`)).toBeNull();
    });

    test("does not go on across a time in which nothing was kept", () => {
      const before = watch("t");
      append("t", 1);
      const id = before.endId();
      before.forget();
      append("t", 2);
      const tail = watch("t");
      append("t", 3);
      expect(tail.positionAfter(id)).toBeNull();
      expect(numbersOf(tail)).toEqual([3]);
      // What was left behind does no harm to what came in its place.
      before.forget();
      append("t", 4);
      expect(numbersOf(tail)).toEqual([3, 4]);
    });

    test("keeps the latest 1,000 messages; what was before them is lost, and known to be", () => {
      const tail = watch("t");
      append("t", ...many(0, 2));
      const [first, second] = read(tail).map(({ id }) => id);
      append("t", ...many(2, 1_002));
      expect(tail.first).toBe(tail.end - 1_000);
      expect(after(tail, second ?? "")).toEqual(many(2, 1_002));
      expect(tail.positionAfter(first ?? "")).toBeNull();
    });
  });
}
