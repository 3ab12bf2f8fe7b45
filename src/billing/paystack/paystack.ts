import type { Clock } from "../../lib/clock.ts";
import type { PaymentProcessor } from "../processor.ts";
import { readCharge, readDeactivation, readLookUp, readRefund, readVerification } from "./answers.ts";
import { readCallback } from "./callback.ts";
import { createPaystackHttp } from "./http.ts";

export interface PaystackOptions {
  /** `sk_live_…` or `sk_test_…`. The first one is used for calls; callbacks may be signed with any, so that a key can be replaced. */
  readonly secretKeys: readonly [string, ...string[]];
  /** `https://api.paystack.co`; another one for tests, which may be plain http on this machine. */
  readonly baseUrl: string;
  readonly clock: Clock;
}

/** A bank may take its time over a charge, and giving up early leaves a charge whose outcome is unknown. */
const chargeTimeoutMs = 60_000;
const timeoutMs = 15_000;

/**
 * Paystack allows 1,200 saved-card charges a minute with a live key and 100 with a test key; half of that, or 40 with a
 * test key, is left for retries and people.
 */
const chargesPerSecond = { live: 10, test: 1 };

/**
 * The adapter for Paystack (https://paystack.com/docs/api). Amounts are kobo on both sides. The reference is the only
 * thing that keeps a charge from being made twice: Paystack refuses one that it has seen, and has no other idempotency key.
 * @throws Error for a key or an address that cannot be right
 */
export function createPaystack({ secretKeys, baseUrl, clock }: PaystackOptions): PaymentProcessor {
  for (const secretKey of secretKeys) requireSecretKey(secretKey);
  // Paystack has one address for both modes; the key decides.
  const mode = secretKeys[0].startsWith("sk_live_") ? "live" : "test";
  requireEncryption(baseUrl);
  const http = createPaystackHttp({ secretKey: secretKeys[0], baseUrl, clock });

  return {
    name: "paystack",
    mode,
    chargesPerSecond: chargesPerSecond[mode],

    async startVerification({ reference, email, amountKobo, returnUrl, cancelUrl }) {
      const body = {
        email,
        amount: amountKobo,
        currency: "NGN",
        reference,
        // Only cards give a token that can be charged again.
        channels: ["card"],
        callback_url: returnUrl,
        metadata: {
          purpose: "card_verification",
          cancel_action: cancelUrl,
          // Takes only cards that can be charged again, and has the bank ask their owner.
          custom_filters: { recurring: true },
        },
      };
      return readVerification(await http.post("/transaction/initialize", body, timeoutMs), reference);
    },

    async lookUp(reference) {
      const path = `/transaction/verify/${encodeURIComponent(reference)}`;
      return readLookUp(await http.get(path, timeoutMs), reference);
    },

    async chargeSavedCard({ reference, token, email, amountKobo, returnUrl }) {
      const body = {
        email,
        amount: amountKobo,
        currency: "NGN",
        authorization_code: token,
        reference,
        callback_url: returnUrl,
        // A string here; initialize takes an object.
        metadata: JSON.stringify({ purpose: "saved_card_charge", cancel_action: returnUrl }),
      };
      return readCharge(await http.post("/transaction/charge_authorization", body, chargeTimeoutMs), reference);
    },

    async refund({ reference, amountKobo }) {
      return readRefund(await http.post("/refund", { transaction: reference, amount: amountKobo }, timeoutMs));
    },

    readCallback: (body, headers) => readCallback(body, headers, secretKeys),

    async forgetCard(token) {
      const path = "/customer/authorization/deactivate";
      return readDeactivation(await http.post(path, { authorization_code: token }, timeoutMs));
    },
  };
}

/** An empty key would let anybody sign callbacks. */
function requireSecretKey(secretKey: string): void {
  if (/^sk_(live|test)_\w+$/.test(secretKey)) return;
  throw new Error(
    "A Paystack secret key is sk_live_ or sk_test_ followed by letters and digits. Try: copy the secret key, not the public one.",
  );
}

/** The key goes out with every call, so a call that leaves this machine has to be encrypted. */
function requireEncryption(baseUrl: string): void {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  const onThisMachine = url !== null && ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && onThisMachine)) return;
  throw new Error("Paystack's address must be an https URL. Try: https://api.paystack.co");
}
