import { createPaystack } from "../../../src/billing/paystack/paystack.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { processorContract } from "../../contract/processor/processor.ts";
import { paystackCards } from "../../support/paystack-answers.ts";
import { refusedEmail } from "../../support/paystack-books.ts";
import { startPaystackStandIn } from "../../support/paystack-stand-in.ts";
import { startReceiver } from "../../support/receiver.ts";

const secretKey = "sk_test_contract";

processorContract("Paystack", async () => {
  const paystack = await startPaystackStandIn({ secretKey });
  const receiver = startReceiver({ answer: () => new Response(null, { status: 200 }) });
  paystack.callbackUrl = receiver.url;
  return {
    processor: createPaystack({ secretKeys: [secretKey], baseUrl: paystack.url, clock: systemClock }),
    customer: {
      pays: async (page) => void (await paystack.pay(page)),
      declines: async (page) => paystack.decline(page),
      paysWithCardThatIsNotReusable: async (page) => void (await paystack.pay(page, paystackCards.notReusable)),
      paysWithCardThatDeclinesLater: async (page) => void (await paystack.pay(page, paystackCards.declinesLater)),
      paysWithCardThatAsksLater: async (page) => void (await paystack.pay(page, paystackCards.asksLater)),
      confirms: async (page) => void (await paystack.confirm(page)),
    },
    refusedEmail,
    timesCharged: (reference) => paystack.transactions.get(reference)?.timesCharged ?? 0,
    callbackFor: (reference) => receiver.waitFor((request) => request.body.includes(`"${reference}"`)),
    signatureHeader: "x-paystack-signature",
    async stop() {
      await paystack.callbacksSent();
      await receiver.stop();
      await paystack.stop();
    },
  };
});
