import { expect, test } from "bun:test";
import { nextPageStep, type PageAnswer, type PageStep } from "../../src/billing/page-step.ts";
import { pageLifetimeMs, pagePauseMs } from "../../src/billing/terms.ts";
import type { Charge } from "../../src/domain/books.ts";
import { chargeOf } from "../support/billing-factory.ts";

const url = "https://pay.test/1";
const made: Partial<Charge> = { pageUrl: url, lookUpAt: 1 };
const asked: Partial<Charge> = { pageUrl: null, lookUpAt: 1, reason: null };
const refused: Partial<Charge> = { pageUrl: null, lookUpAt: null, reason: "The address was refused" };
const go: PageStep = { kind: "go", url };
const young = pagePauseMs;
const old = pageLifetimeMs;

test.each<[string, Partial<Charge>, PageAnswer, number, PageStep]>([
  ["a charge that was paid just now leads past its page", made, "paid", young, { kind: "look_again" }],
  ["so does one that has failed", made, "failed", young, { kind: "look_again" }],
  ["a page that nobody has paid yet is shown", made, "waiting", young, go],
  ["after an hour it is replaced", made, "waiting", old, { kind: "make", under: "next" }],
  ["unless it may just have been paid", made, "unknown", old, go],
  ["or it was not time to ask", made, "not_asked", old, go],
  ["a page that the processor has lost is replaced", made, "not_found", young, { kind: "make", under: "next" }],
  ["a page from before the clock was set back is shown", made, "waiting", -1, go],
  ["the bank's page is shown for as long as its charge waits", { ...made, kind: "upgrade" }, "waiting", old, go],
  ["a page that was asked for moments ago is waited for", asked, "not_asked", 0, { kind: "wait", ms: pagePauseMs }],
  [
    "then it is asked for again, if the processor does not have it",
    asked,
    "not_found",
    young,
    { kind: "make", under: "this" },
  ],
  [
    "while the processor is silent, no other reference is used up",
    asked,
    "unknown",
    young,
    { kind: "wait", ms: pagePauseMs },
  ],
  [
    "a page that was made, but whose address was lost, is replaced",
    asked,
    "waiting",
    young,
    { kind: "make", under: "next" },
  ],
  ["a refused address is told of at once", refused, "not_asked", 0, { kind: "email_refused" }],
  [
    "and tried again after a pause, under the same reference",
    refused,
    "not_asked",
    young,
    { kind: "make", under: "this" },
  ],
  ["a clock that was set back holds nothing up", refused, "not_asked", -1, { kind: "make", under: "this" }],
])("%s", (_name, page, answer, ageMs, step) => {
  expect(nextPageStep(chargeOf({ kind: "verification", ...page }), answer, ageMs)).toEqual(step);
});
