import { describe, expect, test } from "bun:test";
import { etag, tagsIn } from "../../src/http/entity-tag.ts";

describe("If-Match", () => {
  test.each<[string, string | null, readonly string[] | null]>([
    ["is missing", null, null],
    ["takes anything", "*", null],
    ["takes anything, with white space", " * ", null],
    ["names a tag", '"a1"', ["a1"]],
    ["names several", '"a1", "b2" ,"c,3"', ["a1", "b2", "c,3"]],
    ["names an empty tag", '""', [""]],
    ["names a weak tag, which never matches", 'W/"a1"', []],
    ["names a weak tag and another", 'W/"a1", "b2"', ["b2"]],
  ])("that %s: %j", (_, header, tags) => {
    expect(tagsIn(header)).toEqual(tags);
  });

  test("takes what ETag has", () => {
    expect(tagsIn(etag("a1"))).toEqual(["a1"]);
  });

  test.each(["", "a1", '"a1', '"a1" "b2"', '"a1",', 'w/"a1"', '*, "a1"', '"a\u00e91"'])(
    "that is %j is refused",
    (header) => {
      expect(() => tagsIn(header)).toThrow("If-Match must be *, or the ETag of a response, with its quotation marks.");
    },
  );
});
