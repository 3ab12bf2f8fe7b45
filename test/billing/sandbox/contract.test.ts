import { processorContract } from "../../contract/processor/processor.ts";
import { cards, createTestSandbox } from "../../support/sandbox.ts";

processorContract("The sandbox", async () => {
  const world = await createTestSandbox();
  const { sandbox, books, callbacks } = world;
  const codeOf = (page: string) =>
    page
      .replace(/\/confirm$/, "")
      .split("/")
      .at(-1) ?? "";

  /** A card of which the bank asks at once is confirmed at once. */
  async function pay(page: string, number: string): Promise<void> {
    const shown = await sandbox.pay(codeOf(page), number);
    if (shown?.page.state === "confirming") await sandbox.confirm(codeOf(page), true);
  }

  return {
    processor: sandbox,
    customer: {
      pays: (page) => pay(page, cards.good),
      declines: (page) => pay(page, cards.declined),
      paysWithCardThatIsNotReusable: (page) => pay(page, cards.onceOnly),
      paysWithCardThatDeclinesLater: (page) => pay(page, cards.emptyTomorrow),
      paysWithCardThatAsksLater: (page) => pay(page, cards.careful),
      confirms: async (page) => void (await sandbox.confirm(codeOf(page), true)),
    },
    refusedEmail: "Ada@refused.example",
    async timesCharged(reference) {
      const found = await books.findTransaction({ reference });
      return found?.state === "paid" ? 1 : 0;
    },
    async callbackFor(reference) {
      const found = callbacks.find(({ body }) => new TextDecoder().decode(body).includes(`"${reference}"`));
      if (!found) throw new Error("No callback was sent");
      return found;
    },
    signatureHeader: "x-paystack-signature",
    stop: () => world.end(),
  };
});
