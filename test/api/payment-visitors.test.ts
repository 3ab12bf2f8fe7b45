import { expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { paystackCards } from "../support/paystack-answers.ts";
import { logged, signUp, visit } from "./customers.ts";
import { hostedPage, known, type PaystackWorld, secretKey, startPaystackWorld } from "./paystack-world.ts";

/** What visitors who prove nothing may cost: look-ups at the processor, and the patience of everybody else. */

setDefaultTimeout(120_000);

const lookUps = ({ paystack }: PaystackWorld) => paystack.requests.filter(({ operation }) => operation === "verify");

const comeBack = ({ server }: PaystackWorld, reference: string) => visit(server, `/pay/return?reference=${reference}`);

/** Of a page that was opened and not paid. */
async function openReference(world: PaystackWorld): Promise<string> {
  const customer = await signUp(world.server);
  await hostedPage(world, customer.paymentUrl);
  return known(world, "verification").at(-1)?.reference ?? "";
}

test("45 visits for one reference are one look-up a minute", async () => {
  await using world = await startPaystackWorld();
  const reference = await openReference(world);
  for (let n = 0; n < 45; n += 1) await comeBack(world, reference);
  await world.paystack.received("verify");
  expect(lookUps(world)).toHaveLength(1);
  world.clock.travel(61_000);
  await comeBack(world, reference);
  // The scheduled one of the first minute comes as well.
  await world.paystack.received("verify", 2);
  expect(lookUps(world).length).toBeLessThanOrEqual(3);
});

test("references that nobody has, and those that are settled, cost none", async () => {
  await using world = await startPaystackWorld();
  const customer = await signUp(world.server);
  await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
  await customer.whenBilling(({ status }) => status === "active");
  const before = lookUps(world).length;
  await comeBack(world, known(world, "verification")[0]?.reference ?? "");
  await comeBack(world, "ver-00000000000000000000000000");
  // What they would have asked for comes before this.
  await openReference(world);
  expect(lookUps(world)).toHaveLength(before);
});

test("what the processor says to a visitor stops nobody's payment", async () => {
  await using world = await startPaystackWorld();
  const reference = await openReference(world);
  world.paystack.faults.next("verify", "rate_limited");
  await comeBack(world, reference);
  await until(
    () => lookUps(world).length,
    (length) => length === 1,
  );

  // Another customer pays meanwhile. No time passes: the callback is heard at once.
  const customer = await signUp(world.server);
  await world.paystack.pay(await hostedPage(world, customer.paymentUrl), paystackCards.visa);
  await customer.whenBilling(({ status }) => status === "active");
  expect(await customer.status()).toBe("active");
});

test("a page older than an hour stays while the processor cannot be asked about it: it may just be being paid", async () => {
  await using world = await startPaystackWorld();
  const customer = await signUp(world.server);
  const page = await hostedPage(world, customer.paymentUrl);
  world.clock.travel(61 * 60_000);
  world.paystack.faults.every("verify", "malformed_json");
  expect(await hostedPage(world, customer.paymentUrl)).toBe(page);
  expect(await hostedPage(world, customer.paymentUrl)).toBe(page);
  world.paystack.faults.clear();
  await world.paystack.pay(page);
  await customer.whenBilling(({ status }) => status === "active");
  expect((await customer.charges()).map(({ state }) => state)).toEqual(["succeeded"]);
});

test("look-ups that cannot be read are told of once with their reason, and counted", async () => {
  await using world = await startPaystackWorld();
  await openReference(world);
  world.paystack.faults.every("verify", "malformed_json");
  async function counted(): Promise<number> {
    const { text } = await world.server.request("GET", "/metrics", { token: world.server.operatorToken });
    return Number(/^postrider_payment_lookups_unknown_total (\d+)$/m.exec(text)?.[1]);
  }
  await until(
    async () => {
      const heard = await counted();
      // Less than a look-up may take, so that one of which nothing is to be seen yet is not given up.
      if (heard === lookUps(world).length) world.clock.travel(10_000);
      return heard;
    },
    (heard) => heard >= 5,
  );
  expect(logged(world.server, "payment.look_up_unknown")).toMatchObject([
    { level: "warn", processor: "paystack", reason: "Paystack answered HTTP 200" },
  ]);
  expect(world.server.log.join("")).not.toContain(secretKey);
});
