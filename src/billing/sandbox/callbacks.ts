import { createHmac, timingSafeEqual } from "node:crypto";
import { formatIso } from "../../lib/iso-time.ts";
import type { SandboxTransaction } from "../../store/sandbox-books.ts";
import type { Callback } from "../processor.ts";

export const signatureHeader = "x-paystack-signature";

/**
 * The sandbox's callbacks. They imitate Paystack's, with the oddities of its documented sample (a `metadata` of 0, a card
 * without token and signature), so that readers cannot rely on more than a hint.
 */
export function createCallbacks(secret: Uint8Array) {
  const sign = (body: Uint8Array) => createHmac("sha512", secret).update(body).digest();

  return {
    /** The signature is lower-case hex of HMAC-SHA512 over the exact bytes. */
    write({ reference, amountKobo, createdAt, paidAt }: SandboxTransaction): { body: Uint8Array; signature: string } {
      const data = {
        domain: "test",
        status: "success",
        reference,
        amount: amountKobo,
        message: null,
        gateway_response: "Successful",
        paid_at: paidAt === null ? null : formatIso(paidAt),
        created_at: formatIso(createdAt),
        channel: "card",
        currency: "NGN",
        metadata: 0,
        fees: null,
        plan: {},
        authorization: {},
      };
      const body = new TextEncoder().encode(JSON.stringify({ event: "charge.success", data }));
      return { body, signature: sign(body).toString("hex") };
    },

    read(body: Uint8Array, headers: Headers): Callback | null {
      const signature = headers.get(signatureHeader) ?? "";
      // Buffer.from would stop at the first character that is no digit, and `timingSafeEqual` throws for other lengths.
      if (!/^[0-9a-f]{128}$/i.test(signature)) return null;
      if (!timingSafeEqual(Buffer.from(signature, "hex"), sign(body))) return null;
      return readCharge(body);
    },
  };
}

/** The sandbox reports only charges that were paid. */
function readCharge(body: Uint8Array): Callback {
  let told: unknown;
  try {
    told = JSON.parse(new TextDecoder().decode(body));
  } catch {}
  const { event, data } = fieldsOf(told);
  const { reference } = fieldsOf(data);
  if (event !== "charge.success" || typeof reference !== "string") return { kind: "ignored", reference: null };
  return { kind: "charge", reference };
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? { ...value } : {};
