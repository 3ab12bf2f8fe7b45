import type { Charge } from "../domain/books.ts";
import type { Outcome } from "./charging.ts";
import { pageLifetimeMs, pagePauseMs } from "./terms.ts";

/** What comes next for a visitor of a `payment_url`, by the page that it leads to. */
export type PageStep =
  /** The charge has just ended: the address now leads past it, or is used up itself. */
  | { readonly kind: "look_again" }
  | { readonly kind: "go"; readonly url: string }
  /** The processor did not make the page, because of the account's e-mail address. */
  | { readonly kind: "email_refused" }
  | { readonly kind: "wait"; readonly ms: number }
  /** Ask the processor for a page, under the reference of this one or under the next. */
  | { readonly kind: "make"; readonly under: "this" | "next" };

/** What the processor said about the charge; `not_asked`: it was not due to be asked. */
export type PageAnswer = Outcome["kind"] | "not_asked";

/** The rule behind `payment_url` (rules, section 12). @param ageMs since the processor was last asked for the page */
export function nextPageStep(page: Charge, answer: PageAnswer, ageMs: number): PageStep {
  if (answer === "paid" || answer === "failed" || answer === "unacceptable") return { kind: "look_again" };
  const pauseMs = pageRestMs(ageMs);
  return page.pageUrl === null
    ? stepWithoutPage(page, answer, pauseMs)
    : stepWithPage(page, page.pageUrl, answer, { ageMs, pauseMs });
}

function stepWithPage(
  { kind }: Charge,
  url: string,
  answer: PageAnswer,
  { ageMs, pauseMs }: { ageMs: number; pauseMs: number },
): PageStep {
  // The bank's page lives as long as its charge waits, and nothing takes its place meanwhile.
  if (kind !== "verification") return { kind: "go", url };
  // An old page may have just been paid; it stays unless the processor says that it has not been.
  const mayBePaid = answer === "not_asked" || answer === "unknown";
  if (answer !== "not_found" && (ageMs < pageLifetimeMs || mayBePaid)) return { kind: "go", url };
  return pauseMs > 0 ? { kind: "wait", ms: pauseMs } : { kind: "make", under: "next" };
}

function stepWithoutPage(page: Charge, answer: PageAnswer, pauseMs: number): PageStep {
  // Nobody has visited a page that was never made: its reason is the processor's for not making it.
  if (pauseMs > 0) return page.reason === null ? { kind: "wait", ms: pauseMs } : { kind: "email_refused" };
  if (isUnmade(page) || answer === "not_found") return { kind: "make", under: "this" };
  // It may have been made: that is found out first, lest every visit during an outage use up a reference.
  if (answer === "unknown" || answer === "not_asked") return { kind: "wait", ms: pagePauseMs };
  return { kind: "make", under: "next" };
}

/** How long no other page is asked for; 0 also where the clock was set back since. */
export const pageRestMs = (ageMs: number): number => (ageMs < 0 ? 0 : Math.max(0, pagePauseMs - ageMs));

/** The processor has refused to make the page, or does not have it long after it was asked: there is nothing to look up. */
export const isUnmade = ({ kind, pageUrl, lookUpAt }: Charge): boolean =>
  kind === "verification" && pageUrl === null && lookUpAt === null;
