import { describe, expect, test } from "bun:test";
import { type Begun, inPlace, keyOf } from "../../../web/pages/overview/begun.ts";
import type { Cause, Failing } from "../../../web/pages/overview/failing.ts";

const cause = (status: number, failed: number): Cause => ({
  ...{ code: "http_status", status, answers: [], moreAnswers: 0, types: [], waiting: 0, failed },
  ...{ isOngoing: true, firstAt: 0, lastFailedAt: 0 },
});
const webhook = (id: string, ...causes: Cause[]): Failing => ({
  ...{ id, name: id, isRegistered: true, canReplay: true, downSince: 1, isOngoing: true, causes, waiting: 0 },
  failed: causes.reduce((sum, { failed }) => sum + failed, 0),
});
const begun = (of: string, status: number | null): Begun => ({
  ...{ replay: "rpl_1", webhook: of, cause: status === null ? "" : keyOf(cause(status, 1)) },
});
/** "shop: 404 3, 500 1" */
const inWords = (failing: readonly Failing[]) =>
  failing.map(({ id, causes }) => `${id}: ${causes.map(({ status, failed }) => `${status} ${failed}`).join(", ")}`);

const before = [webhook("shop", cause(404, 3), cause(500, 1)), webhook("books", cause(503, 2))];

describe("what fails", () => {
  test.each<[string, Begun[], Failing[], string[]]>([
    ["is shown as it is while nothing was replayed", [], [webhook("new", cause(400, 1))], ["new: 400 1"]],
    [
      "keeps the order in which it stood",
      [begun("shop", 404)],
      [webhook("books", cause(503, 2)), webhook("shop", cause(500, 1), cause(404, 1))],
      ["shop: 404 1, 500 1", "books: 503 2"],
    ],
    [
      "keeps what was replayed in its place when it is over",
      [begun("shop", 404)],
      [webhook("books", cause(503, 2)), webhook("shop", cause(500, 1))],
      ["shop: 404 0, 500 1", "books: 503 2"],
    ],
    [
      "lets go of what was over by itself, and shows what is new below",
      [begun("shop", null)],
      [webhook("new", cause(400, 1)), webhook("shop", cause(403, 1))],
      ["shop: 404 0, 500 0, 403 1", "new: 400 1"],
    ],
  ])("%s", (_, replays, now, shown) => {
    expect(inWords(inPlace(now, before, replays))).toEqual(shown);
  });

  test("is calm where all of it has arrived", () => {
    expect(inPlace([], before, [begun("books", 503)])).toMatchObject([
      { id: "books", downSince: null, isOngoing: false, failed: 0, waiting: 0 },
    ]);
  });
});
