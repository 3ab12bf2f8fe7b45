import { describe, expect, test } from "bun:test";
import { encodeEventId, firstSeqAt, randomTail } from "../../src/lib/id.ts";
import { isInId, needleOf, type SeqRange, searchRecords, sliceRecords, wholeEvents } from "../../src/store/search.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const atMs = (ms: number) => firstSeqAt(ms);

describe("a search", () => {
  /** A list with an event each millisecond, down from `newest`; each slice is a hundred of them, and takes a while. */
  function listOf({
    newest,
    isFound,
    sliceMs = 0,
  }: {
    newest: number;
    isFound(ms: number): boolean;
    sliceMs?: number;
  }) {
    const clock = createFakeClock();
    let slices = 0;
    const search = async (
      text: string,
      { offset = 0, limit = 2, ...range }: { offset?: number; limit?: number } & SeqRange = {},
    ) => {
      const { places, ...rest } = await searchRecords<{ eventSeq: number }>({
        ...{ text, offset, limit, range, clock },
        async look(_, { toSeq = atMs(newest), fromSeq = 0 }) {
          slices += 1;
          clock.advance(sliceMs);
          const from = Math.floor(toSeq / atMs(1));
          const until = Math.max(0, Math.ceil(fromSeq / atMs(1)), from - 99);
          const looked = Array.from({ length: Math.max(0, from - until + 1) }, (_, i) => from - i);
          const isEnd = until === 0 || until === Math.ceil(fromSeq / atMs(1));
          const found = looked.filter(isFound).map((ms) => ({ eventSeq: atMs(ms) }));
          return { found, events: looked.length, nextSeq: isEnd ? null : atMs(until - 1) };
        },
      });
      return { places: places.map(({ eventSeq }) => Math.floor(eventSeq / atMs(1))), ...rest };
    };
    return { search, slices: () => slices };
  }

  test("that looks at everything says so, and what it has found is exact", async () => {
    const { search } = listOf({ newest: 250, isFound: (ms) => ms % 100 === 7 });
    expect(await search("x", { limit: 5 })).toEqual({
      ...{ places: [207, 107, 7], total: 3, totalIsExact: true, searchedTo: null },
    });
  });

  test("ends when the page is full and one more is found, and says how far it came", async () => {
    const { search, slices } = listOf({ newest: 1_000, isFound: (ms) => ms % 100 === 50 });
    expect(await search("x")).toEqual({ places: [950, 850], total: 3, totalIsExact: false, searchedTo: 700 });
    expect(slices()).toBe(3);
    const { places, total } = await search("x", { offset: 2 });
    expect([places, total]).toEqual([[750, 650], 5]);
  });

  test("ends after half a second, or 200,000 events", async () => {
    const slow = listOf({ newest: 100_000, isFound: () => false, sliceMs: 100 });
    expect(await slow.search("x")).toMatchObject({ total: 0, totalIsExact: false, searchedTo: 99_500 });
    const long = listOf({ newest: 300_000, isFound: () => false });
    expect(await long.search("x")).toMatchObject({ total: 0, totalIsExact: false, searchedTo: 100_000 });
  });

  test("does not end within the last millisecond of its range, however much that holds", async () => {
    const clock = createFakeClock();
    const seqs = [...Array.from({ length: 2_048 }, (_, n) => atMs(8) - 1 - n), atMs(6), atMs(5)];
    let slices = 0;
    const search = (range: SeqRange) =>
      searchRecords<{ eventSeq: number }>({
        ...{ text: "x", offset: 0, limit: 1, range, clock },
        async look(_, { toSeq = atMs(8) }) {
          slices += 1;
          clock.advance(200);
          const rest = seqs.filter((seq) => seq <= toSeq);
          const found = rest.slice(0, 100).map((eventSeq) => ({ eventSeq }));
          return { found, events: found.length, nextSeq: rest[100] ?? null };
        },
      });
    expect(await search({})).toMatchObject({ total: 100, searchedTo: 7 });
    expect(await search({ toSeq: atMs(8) - 1 })).toMatchObject({ total: 2_050, searchedTo: null });
    expect(slices).toBe(1 + 21);
  });

  test("looks at more records at once where one event has more than a slice", async () => {
    const limits: number[] = [];
    const places = Array.from({ length: 1_200 }, (_, key) => ({ eventSeq: atMs(1), key }));
    const { total } = await searchRecords({
      ...{ text: "x", offset: 0, limit: 1, range: {}, clock: createFakeClock() },
      async look(_, __, limit) {
        limits.push(limit);
        const { whole, nextSeq } = wholeEvents(places.slice(0, limit), limit);
        return { found: whole, events: whole.length === 0 ? 0 : 1, nextSeq };
      },
    });
    expect([total, limits]).toEqual([1_200, [500, 1_000, 2_000]]);
  });

  test("for a whole id begins where it lies, unless that is out of range, and goes on with those that name it", async () => {
    const id = encodeEventId(atMs(3), randomTail());
    const { search } = listOf({ newest: 250, isFound: (ms) => ms % 100 === 3 });
    const all = { total: 3, totalIsExact: true, searchedTo: null };
    expect(await search(id, { limit: 5 })).toEqual({ places: [3, 203, 103], ...all });
    expect(await search(id, { offset: 1 })).toEqual({ places: [203, 103], ...all });
    expect(await search(id, { limit: 5, fromSeq: atMs(50) })).toMatchObject({ places: [203, 103], total: 2 });
    const far = listOf({ newest: 300_000, isFound: (ms) => ms === 3 });
    expect(await far.search(id)).toEqual({ places: [3], total: 1, totalIsExact: false, searchedTo: 100_000 });
    // A continuation begins with it again, until the search has passed it.
    expect(await far.search(id, { toSeq: atMs(100_001) - 1 })).toMatchObject({ places: [3], searchedTo: null });
    expect(await far.search(id, { toSeq: atMs(3) - 1 })).toMatchObject({ places: [], total: 0 });
  });
});

describe("what is looked for", () => {
  const textsOf = (text: string) => needleOf(text).texts.map((each) => new TextDecoder().decode(each));

  test("is the text as it is, and as it stands in a JSON string", () => {
    expect(textsOf("order 17")).toEqual(["order 17"]);
    expect(textsOf('say "hi"\n')).toEqual(['say "hi"\n', 'say \\"hi\\"\\n']);
  });

  test("is a part of an id if it can be one, in either case", () => {
    const seq = atMs(1_700_000_000_000);
    const tail = randomTail();
    const id = encodeEventId(seq, tail);
    for (const part of [id, id.slice(8, 14), id.slice(8, 14).toUpperCase(), "evt_"]) {
      expect(isInId(needleOf(part), seq, tail)).toBe(true);
    }
    for (const part of ["not in it", "-", `${id}0`]) expect(isInId(needleOf(part), seq, tail)).toBe(false);
  });
});

test("a slice that is full leaves its last event to the next", () => {
  const places = Array.from({ length: sliceRecords }, (_, i) => ({ eventSeq: 10_000 - Math.floor(i / 3), key: i }));
  const last = places.at(-1)?.eventSeq ?? 0;
  expect(wholeEvents(places, sliceRecords)).toEqual({
    whole: places.filter(({ eventSeq }) => eventSeq > last),
    nextSeq: last,
  });
  expect(wholeEvents(places.slice(1), sliceRecords)).toEqual({ whole: places.slice(1), nextSeq: null });
  expect(wholeEvents([], sliceRecords)).toEqual({ whole: [], nextSeq: null });
});
