import { describe, expect, test } from "bun:test";
import { readTrace, traceHeaders } from "../../src/domain/trace-context.ts";

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** As the headers of a delivery have it again. */
const sent = (traceparent: string | null, tracestate: string | null = null) =>
  traceHeaders(readTrace(traceparent, tracestate));

describe("a traceparent (W3C Trace Context, section 3.2)", () => {
  test.each([
    parent,
    parent.replace(/01$/, "00"),
    parent.replace(/^00/, "cc"),
    `${parent.replace(/^00/, "cc")}-what-comes-later`,
  ])("%s is sent as it came", (traceparent) => {
    expect(sent(traceparent)).toEqual({ traceparent });
  });

  test.each([
    ["none", null],
    ["an empty one", ""],
    ["a word", "trace"],
    ["one with capital letters", parent.toUpperCase()],
    ["one of the version that there is not", parent.replace(/^00/, "ff")],
    ["one with more than its version has", `${parent}-more`],
    ["one with a short trace", parent.replace("0af7", "")],
    ["one without a trace", parent.replace(/-[0-9a-f]{32}-/, `-${"0".repeat(32)}-`)],
    ["one without a parent", parent.replace(/-[0-9a-f]{16}-/, `-${"0".repeat(16)}-`)],
    ["one with a space", ` ${parent}`],
    ["one that is too long", `${parent.replace(/^00/, "cc")}-${"x".repeat(256)}`],
    ["one with a line break", `${parent}\nx`],
  ])("%s is left out", (_, traceparent) => {
    expect(sent(traceparent, "a=1")).toEqual({});
  });
});

describe("a tracestate (section 3.3), beside a traceparent", () => {
  const members = (count: number) => Array.from({ length: count }, (_, i) => `k${i}=v`).join(",");

  test.each([
    "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
    "fw529a3039@dt=FfUAAA!",
    "a=1 , b=2,,\tc=3",
    "a=b c",
    members(32),
    `a=${"x".repeat(256)}`,
  ])("%s is sent as it came", (tracestate) => {
    expect(sent(parent, tracestate)).toEqual({ traceparent: parent, tracestate });
  });

  test.each([
    ["an empty one", ""],
    ["one without members", ", ,"],
    ["one without values", "a,b"],
    ["one with an empty value", "a="],
    ["a key with capital letters", "A=1"],
    ["a key twice", "a=1,a=2"],
    ["a value with a sign that it may not have", "a=b=c"],
    ["a character that headers may not have", "a=ä"],
    ["a line break", "a=1\nb: 2"],
    ["more than 32 members", members(33)],
    ["a value that is too long", `a=${"x".repeat(257)}`],
    ["more than 512 characters", `a=${"x".repeat(250)},b=${"x".repeat(250)},c=${"x".repeat(20)}`],
  ])("with %s is left out, and the traceparent is sent", (_, tracestate) => {
    expect(sent(parent, tracestate)).toEqual({ traceparent: parent });
  });
});
