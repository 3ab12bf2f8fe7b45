import { describe, expect, test } from "bun:test";
import {
  addRow,
  changesInWords,
  type Draft,
  editRow,
  faultOf,
  findFault,
  findRemoved,
  leavingWebhooks,
  rebase,
  removeRow,
  toDraft,
  toEntries,
  undoRow,
} from "../../../../web/pages/webhooks/draft.ts";

const shop = { id: "wh_shop", url: "https://shop.example/hook", name: "Shop" };
const books = { id: "wh_books", url: "https://books.example/hook", name: "" };
const registered = [shop, books];

const edits: readonly [string, (draft: Draft) => Draft, string, string[]][] = [
  ["nothing", (draft) => draft, "", [shop.url, books.url]],
  [
    "adding one",
    (draft) => addRow(draft, "new-1", " https://new.example ", ""),
    "1 added",
    [shop.url, books.url, "https://new.example"],
  ],
  ["removing one", (draft) => removeRow(draft, shop.id), "1 removed", [books.url]],
  ["removing one and undoing it", (draft) => undoRow(removeRow(draft, shop.id), shop.id), "", [shop.url, books.url]],
  [
    "removing one that was never saved",
    (draft) => removeRow(addRow(draft, "new-1", "x", ""), "new-1"),
    "",
    [shop.url, books.url],
  ],
  ["another name", (draft) => editRow(draft, books.id, { name: "Books" }), "1 changed", [shop.url, books.url]],
  [
    "another name and back",
    (draft) => editRow(editRow(draft, shop.id, { name: "" }), shop.id, { name: "Shop" }),
    "",
    [shop.url, books.url],
  ],
  [
    "one of each",
    (draft) =>
      addRow(
        removeRow(editRow(draft, books.id, { url: "https://b.example" }), shop.id),
        "new-1",
        "https://new.example",
        "",
      ),
    "1 added, 1 removed, 1 changed",
    ["https://b.example", "https://new.example"],
  ],
];

describe("the list of webhooks, while it is edited", () => {
  test.each(edits)("%s: what has changed, and what is sent", (_, edit, words, urls) => {
    const draft = edit(toDraft(registered));
    expect(changesInWords(draft)).toBe(words);
    expect(toEntries(draft).map(({ webhook_url }) => webhook_url)).toEqual(urls);
  });

  test("knows which webhooks leave: those that are removed, and those whose URL is another one", () => {
    const draft = editRow(removeRow(toDraft(registered), shop.id), books.id, { url: "https://b.example" });
    expect(leavingWebhooks(draft)).toEqual(registered);
    expect(leavingWebhooks(editRow(toDraft(registered), books.id, { name: "Books" }))).toEqual([]);
  });

  test("another URL takes the settings over, and one that stays is not told them again", () => {
    const settings = { event_types: ["order.*"], paused: true, ordered: true, rate_limit: 5, max_concurrency: null };
    // What it would send of these are masks, which stand for nothing at another URL.
    const headers = { Authorization: "••••" };
    const draft = toDraft([{ ...shop, state: "paused", ...settings, headers }, books]);
    const [moved, stays] = toEntries(editRow(draft, shop.id, { url: "https://new.example" }));
    expect(moved).toEqual({ webhook_url: "https://new.example", name: "Shop", ...settings });
    expect(stays).toEqual({ webhook_url: books.url, name: "" });
  });

  test("a webhook that is removed and added again stays", () => {
    const draft = addRow(removeRow(toDraft(registered), shop.id), "new-1", shop.url, "");
    expect(leavingWebhooks(draft)).toEqual([]);
  });
});

describe("the list, when somebody else has saved it meanwhile", () => {
  const edited = editRow(toDraft(registered), shop.id, { name: "My shop" });
  const urlsOf = (draft: Draft) => draft.map(({ url, name }) => `${url} ${name}`);

  test("keeps what was edited, and takes what others added", () => {
    const news = { id: "wh_news", url: "https://news.example", name: "" };
    expect(urlsOf(rebase(edited, [...registered, news]))).toEqual([
      `${shop.url} My shop`,
      `${books.url} `,
      "https://news.example ",
    ]);
  });

  test("drops what others removed, unless it was edited: then it is added again", () => {
    const rebased = rebase(edited, []);
    expect(urlsOf(rebased)).toEqual([`${shop.url} My shop`]);
    expect(changesInWords(rebased)).toBe("1 added");
  });

  test("follows a name that others gave", () => {
    expect(urlsOf(rebase(edited, [shop, { ...books, name: "Books" }]))).toEqual([
      `${shop.url} My shop`,
      `${books.url} Books`,
    ]);
  });

  test("follows a name that others gave where only the URL was edited, and keeps one that was edited", () => {
    const moved = editRow(edited, books.id, { url: "https://b.example" });
    const rebased = rebase(moved, [
      { ...shop, name: "Store" },
      { ...books, name: "Books" },
    ]);
    expect(urlsOf(rebased)).toEqual([`${shop.url} My shop`, "https://b.example Books"]);
  });

  test("is not saved unasked with an edited webhook that others removed", () => {
    const rebased = rebase(edited, [books]);
    expect(findRemoved(edited, rebased)).toMatchObject({ key: shop.id, field: "url" });
    // It was shown as one that is added.
    expect(findRemoved(rebased, rebase(rebased, [books]))).toBeNull();
    expect(findRemoved(edited, rebase(edited, registered))).toBeNull();
    const added = addRow(toDraft([books]), "new-1", "https://new.example", "");
    expect(findRemoved(added, rebase(added, [books]))).toBeNull();
  });

  test("does not add twice what was saved meanwhile", () => {
    const draft = addRow(toDraft([shop]), "new-1", books.url, "");
    expect(urlsOf(rebase(draft, registered))).toEqual([`${shop.url} Shop`, `${books.url} `]);
    const moved = { id: "wh_moved", url: "https://moved.example/hook", name: "Shop" };
    const also = editRow(editRow(toDraft(registered), shop.id, { url: moved.url }), books.id, { name: "Books" });
    expect(urlsOf(rebase(also, [moved, books]))).toEqual([`${books.url} Books`, `${moved.url} Shop`]);
  });
});

describe("a refusal of the list", () => {
  const draft = addRow(removeRow(toDraft(registered), shop.id), "new-1", "http://new.example", "");

  const refused = (code: string, field: string | null, rule: string) => ({
    code,
    message: "In words",
    broken: field === null ? null : { field, rule },
  });
  const ofUrl = refused("invalid_webhook_url", "[1].webhook_url", 'must start with "https://"');
  const ofName = refused("invalid_request", "[0].name", "must have at most 200 characters");
  const same = refused("duplicate_webhook", "[1].webhook_url", "must not be the same URL as [0].webhook_url");

  test.each([
    ["a URL", ofUrl, "new-1", "url", "http://new.example", 'The URL must start with "https://".'],
    ["a name", ofName, books.id, "name", "", "The name must have at most 200 characters."],
    ["a URL that is there twice", same, "new-1", "url", "http://new.example", "In words"],
  ] as const)("is shown next to the field that it names: %s", (_, refusal, key, field, held, message) => {
    expect(findFault(refusal, draft)).toEqual({ key, field, refused: held, message });
  });

  const fault = findFault(ofUrl, draft);

  test.each<[string, string, (draft: Draft) => Draft, boolean]>([
    ["is shown while nothing is edited", "new-1", (draft) => draft, true],
    ["stays when another field is edited", "new-1", (draft) => editRow(draft, "new-1", { name: "New" }), true],
    [
      "goes when its field is edited",
      "new-1",
      (draft) => editRow(draft, "new-1", { url: "https://new.example" }),
      false,
    ],
    ["is not shown at another row", books.id, (draft) => draft, false],
  ])("%s", (_, key, edit, isShown) => {
    const row = edit(draft).find((one) => one.key === key);
    expect(row && faultOf(fault, row)).toEqual(isShown ? fault : null);
  });

  test.each([
    ["none", refused("too_many_webhooks", null, "")],
    ["one of an entry that is not there", refused("invalid_request", "[7].webhook_url", "must be a string")],
    ["one that is not shown", refused("invalid_request", "[1].constructor", "must be a string")],
  ])("is shown beside the button when the field is %s", (_, refusal) => {
    expect(findFault(refusal, draft)).toBeNull();
  });
});
