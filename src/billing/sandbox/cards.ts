import type { SandboxCard } from "../../store/sandbox-books.ts";

export interface TestCard {
  /** As printed on a card. */
  readonly number: string;
  readonly name: string;
  /** For the customer who picks it. */
  readonly does: string;
  readonly brand: "visa" | "mastercard" | "verve";
  /** What happens to the customer on the page. */
  readonly now: { readonly kind: "pays" | "asks" } | { readonly kind: "declines"; readonly reason: string };
  /** Whether it can be charged again, and what happens then. */
  readonly reusable: boolean;
  readonly later: SandboxCard["later"];
}

const pays = { kind: "pays" } as const;
const declines = (reason: string) => ({ kind: "declines", reason }) as const;

/**
 * Numbers that Paystack documents for its test mode, with the same results, so that habits and scripts carry over. The
 * last one is the sandbox's own: no test card of Paystack's pays now and declines later.
 */
export const testCards: readonly TestCard[] = [
  {
    number: "4084 0840 8408 4081",
    name: "Good card",
    does: "Succeeds now and on every later charge.",
    brand: "visa",
    now: pays,
    reusable: true,
    later: "pays",
  },
  {
    number: "5192 6027 2058 4796",
    name: "Careful bank",
    does: "Requires confirmation with the bank, now and on every later charge.",
    brand: "mastercard",
    now: { kind: "asks" },
    reusable: true,
    later: "asks",
  },
  {
    number: "4000 0000 0000 0341",
    name: "Empty tomorrow",
    does: "Succeeds now, but declines every later charge.",
    brand: "visa",
    now: pays,
    reusable: true,
    later: "declines",
  },
  {
    number: "5078 5078 5078 5078 12",
    name: "Once only",
    does: "Succeeds now, but cannot be charged again.",
    brand: "verve",
    now: pays,
    reusable: false,
    later: "declines",
  },
  {
    number: "4084 0800 0000 5408",
    name: "Declined",
    does: "Is declined.",
    brand: "visa",
    now: declines("Declined"),
    reusable: false,
    later: "declines",
  },
  {
    number: "4084 0800 0067 0037",
    name: "Insufficient funds",
    does: "Is declined for insufficient funds.",
    brand: "visa",
    now: declines("Insufficient funds"),
    reusable: false,
    later: "declines",
  },
];

/** ISO/IEC 7812-1. */
const longestNumber = 19;

const digitsOf = (number: string) => number.replaceAll(" ", "");

const byDigits = new Map(testCards.map((card) => [digitsOf(card.number), card]));

/** The test card that was typed or picked, or what is wrong with the input. No real card number gets further than this. */
export function findTestCard(typed: string): { card: TestCard; digits: string } | { problem: string } {
  const digits = digitsOf(typed);
  if (digits === "") return { problem: "Pick a test card or enter its number" };
  if (!/^\d+$/.test(digits)) return { problem: "A card number consists of digits and spaces only" };
  if (digits.length > longestNumber) return { problem: `A card number has at most ${longestNumber} digits` };
  const card = byDigits.get(digits);
  return card ? { card, digits } : { problem: "This is a sandbox: pick one of the test cards" };
}
