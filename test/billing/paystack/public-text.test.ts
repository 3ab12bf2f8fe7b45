import { describe, expect, test } from "bun:test";
import { publicText } from "../../../src/billing/paystack/public-text.ts";

describe("a text of Paystack's", () => {
  test.each([
    "Insufficient Funds",
    "Pickup card (lost/stolen card)",
    "Transaction amount limit exceeded (max 10,000,000)",
    "Charge attempt cannot be fulfilled until 30 minutes",
    "Email does not match Authorization code. Authorization may be inactive or belong to a different email. Please confirm.",
  ])("stays as it is: %s", (text) => {
    expect(publicText(text)).toBe(text);
  });

  test.each([
    ["an e-mail address", "No customer ops+a@acme.example here", "ops"],
    ["an escaped one", "No customer ops%40acme.example here", "ops"],
    ["a key", "The key sk_live_abcdef is wrong", "abcdef"],
    ["a token", "AUTH_abcdefghij cannot be charged", "abcdefghij"],
    ["a customer code", "(CUS_1rkzaqsv4rrhqo6)", "1rkz"],
    ["an access code", "access code 3ni8kdavz62431k", "3ni8"],
    ["a page", "See https://checkout.paystack.com/abcdefghijklmno.", "abcdef"],
    ["a page without a scheme", "See checkout.paystack.com/abcdefghijklmno", "abcdef"],
    ["a card number", "Card 4084080840840840 was declined", "4084"],
    ["a card number in groups", "Card 4084 0808 4084 0840 was declined", "4084"],
    ["a telephone number", "Call +234 801 234 5678", "801"],
  ])("does not show %s", (_, text, secret) => {
    expect(publicText(text)).not.toContain(secret);
    expect(publicText(text)).toContain("[…]");
  });

  test("is one line of bounded length", () => {
    expect(publicText("  Declined\r\n\tby\u0000 the\u202e bank ")).toBe("Declined by the bank");
    expect(publicText("no ".repeat(100_000)).length).toBe(200);
    expect(publicText("@".repeat(1_000_000)).length).toBeLessThanOrEqual(200);
  });
});
