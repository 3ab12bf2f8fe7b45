import { expect, test } from "bun:test";
import { createReadCache } from "../../src/lib/read-cache.ts";

/** A source whose value changes, and whose reads end when they are told to. */
function setUp(most = 10) {
  const cache = createReadCache<string, string>(most);
  const source = { value: "old" };
  const read = (key = "key") => cache.read(key, async () => source.value);
  /** A read that has begun, and ends with what the source held then. */
  function beginRead(key = "key") {
    const { value } = source;
    const gate = Promise.withResolvers<void>();
    const result = cache.read(key, () => gate.promise.then(() => value));
    return async () => {
      gate.resolve();
      return result;
    };
  }
  return { cache, source, read, beginRead };
}

test("what was read is kept until it is forgotten", async () => {
  const { cache, source, read } = setUp();
  expect(await read()).toBe("old");
  source.value = "new";
  expect(cache.get("key")).toBe("old");
  cache.forget("key");
  expect(cache.get("key")).toBeUndefined();
  expect(await read()).toBe("new");
  expect(cache.get("key")).toBe("new");
});

test.each([
  ["of its key", (cache: ReturnType<typeof setUp>["cache"]) => cache.forget("key")],
  ["of another key", (cache: ReturnType<typeof setUp>["cache"]) => cache.forget("other")],
  ["of all keys", (cache: ReturnType<typeof setUp>["cache"]) => cache.forgetAll()],
])("a read that a change %s has overtaken is answered, and not kept", async (_, change) => {
  const { cache, source, beginRead, read } = setUp();
  const end = beginRead();
  source.value = "new";
  change(cache);
  expect(await end()).toBe("old");
  expect(cache.get("key")).toBeUndefined();
  expect(await read()).toBe("new");
  expect(cache.get("key")).toBe("new");
});

test("of two reads, one overtaken and one begun after the change, the later one is kept whichever ends first", async () => {
  for (const order of ["overtaken first", "overtaken last"]) {
    const { cache, source, beginRead } = setUp();
    const overtaken = beginRead();
    source.value = "new";
    cache.forget("key");
    const later = beginRead();
    const ends = order === "overtaken first" ? [overtaken, later] : [later, overtaken];
    for (const end of ends) await end();
    expect([order, cache.get("key")]).toEqual([order, "new"]);
  }
});

test("what is not there, and what could not be read, is not kept", async () => {
  const cache = createReadCache<string, string>(10);
  expect(await cache.read("key", async () => null)).toBeNull();
  await cache.read("key", () => Promise.reject(new Error("no"))).catch(() => {});
  expect(cache.get("key")).toBeUndefined();
});

test("no more than so many are kept, and the first to go is the one that was kept first", async () => {
  const { cache, read } = setUp(2);
  for (const key of ["a", "b", "a", "c"]) await read(key);
  expect(["a", "b", "c"].map((key) => cache.get(key))).toEqual([undefined, "old", "old"]);
});
