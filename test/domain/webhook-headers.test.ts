import { describe, expect, test } from "bun:test";
import { DomainError } from "../../src/domain/errors.ts";
import { checkOwnHeaders, maskOf, type OwnHeaders, unmask } from "../../src/domain/webhook-headers.ts";

/** "code: message" of the refusal; "fine" when there is none. */
function refusalOf(act: () => unknown): string {
  try {
    act();
    return "fine";
  } catch (error) {
    if (error instanceof DomainError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

const judged = (...headers: OwnHeaders) => refusalOf(() => checkOwnHeaders(headers, "headers"));

describe("headers of a tenant's own", () => {
  test.each([
    ["Authorization", "Bearer abc.def"],
    ["X-Api-Key", "k"],
    ["x", "a b\tc"],
    ["!#$%&'*+.^_`|~09", "!~"],
    ["Content", "not a header of ours"],
    ["X-Content-Type", "a"],
    ["Cookie", "a=b; c=d"],
    ["constructor-of", "a"],
    ["A", "••••"],
  ])("may be %p: %p", (name, value) => {
    expect(judged([name, value])).toBe("fine");
  });

  test.each(["", "A B", "A:B", "Ä", "A\r\nB", "a(b)", '"a"', "a\u0000"])("may not have the name %p", (name) => {
    expect(judged([name, "v"])).toMatch(/^invalid_header: headers has the name ".*", which is no name of a header\.$/);
  });

  test.each(["", " a", "a ", "\ta", "a\r\nX-B: c", "a\nb", "a\u0000b", "ä", "a\u007f", "•"])(
    "may not have the value %p, which is not told",
    (value) => {
      const said = judged(["X-Key", value]);
      expect(said).toMatch(/^invalid_header: headers has a value of X-Key that must be of visible ASCII/);
      if (value.trim().length > 2) expect(said).not.toContain(value);
    },
  );

  test.each([
    ..."Content-Type content-length CONTENT-ENCODING Host Connection Keep-Alive TE Trailer Transfer-Encoding".split(
      " ",
    ),
    ..."Upgrade Proxy-Authorization Proxy-Connection Expect User-Agent Date Traceparent tracestate".split(" "),
    ..."webhook-id Webhook-Anything Service-Signature service-x Accept-Encoding".split(" "),
  ])("may not be %p, which the delivery sets", (name) => {
    expect(judged([name, "v"])).toMatch(/^reserved_header: headers has the name /);
  });

  test("are 20 at most, each once, and 4,096 characters", () => {
    const many = (count: number): [string, string][] => Array.from({ length: count }, (_, n) => [`X-${n}`, "v"]);
    expect(judged(...many(20))).toBe("fine");
    expect(judged(...many(21))).toBe("invalid_header: headers must have at most 20 headers, not 21.");
    expect(judged(["X-A", "1"], ["x-a", "2"])).toContain('has the name "x-a" twice');
    expect(judged(["X", "v".repeat(4095)])).toBe("fine");
    expect(judged(["X", "v".repeat(4096)])).toContain("at most 4096 characters");
  });

  test.each([
    ["abcdefghijkl", "••••ijkl"],
    ["abcdefghijk", "••••"],
    ["k", "••••"],
  ])("are shown masked: %p as %p", (value, mask) => {
    expect(maskOf(value)).toBe(mask);
  });
});

describe("masks that are sent back", () => {
  const stored: OwnHeaders = [
    ["Authorization", "Bearer 0123456789"],
    ["X-Key", "k"],
  ];
  const masks: OwnHeaders = [
    ["Authorization", "••••6789"],
    ["X-Key", "••••"],
  ];
  test.each<[string, OwnHeaders, OwnHeaders | "same"]>([
    ["all change nothing", masks, "same"],
    ["all in another order and case change nothing", [["x-key", "••••"], masks[0] ?? ["", ""]], "same"],
    [
      "stand for their values, beside others",
      [masks[0] ?? ["", ""], ["X-Key", "new"]],
      [stored[0] ?? ["", ""], ["X-Key", "new"]],
    ],
    ["leave out what is left out", [["X-Key", "••••"]], [["X-Key", "k"]]],
    ["none at all is none", [], []],
    ["are none where values are sent", [["X-Key", "k"]], [["X-Key", "k"]]],
  ])("%s", (_, given, full) => {
    expect(unmask(given, stored, "headers")).toEqual(full);
  });

  test("count by the length of their values, which new ones are added to", () => {
    const long: OwnHeaders = [["Authorization", "v".repeat(3_990)]];
    const masked: OwnHeaders = [["Authorization", "••••vvvv"]];
    const beside = (length: number): OwnHeaders => [...masked, ["X-Key", "k".repeat(length)]];
    expect(judged(...beside(4_000))).toBe("fine");
    expect(refusalOf(() => unmask(beside(88), long, "headers"))).toBe("fine");
    expect(refusalOf(() => unmask(beside(89), long, "headers"))).toBe(
      "invalid_header: headers must have at most 4096 characters, names and values together.",
    );
  });

  test("may be longer than their values: what was stored can be sent back", () => {
    const stored: OwnHeaders = [["X".repeat(4_094), "k"]];
    const masked: OwnHeaders = stored.map(([name, value]) => [name, maskOf(value)]);
    expect(judged(...masked)).toBe("fine");
    expect(unmask(masked, stored, "headers")).toBe("same");
  });

  test.each<[string, OwnHeaders]>([
    ["of another value", [["Authorization", "••••0000"]]],
    ["under another name", [["X-Other", "••••"]]],
  ])("%s are refused", (_, given) => {
    expect(refusalOf(() => unmask(given, stored, "headers"))).toMatch(
      /^invalid_header: headers has a masked value of .*, which stands for none that is stored/,
    );
  });
});
