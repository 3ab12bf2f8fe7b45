import { describe, expect, test } from "bun:test";
import { createDeliver } from "../../src/delivery/deliver.ts";
import { createHeaderVault } from "../../src/delivery/own-headers.ts";
import { createRetryPolicy } from "../../src/delivery/retry.ts";
import type { SendOrder } from "../../src/delivery/sender.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { createVault } from "../../src/lib/vault.ts";
import type { Settled, Settlement } from "../../src/store/deliveries.ts";
import { dueDelivery, signerMaterial } from "../support/due-delivery.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const delivery = dueDelivery();
const logged = { tenantKey: delivery.tenantKey, eventSeq: delivery.eventSeq, key: 1 };
const route = { signal: new AbortController().signal, isFresh: true, isClosed: () => false, isAwaited: () => true };
const fullDisk = () => unavailable("The disk is full.", "storage_full");

const vault = createVault(new Uint8Array(32));

/** One attempt, acknowledged at once, over a store that answers what the test lines up. */
function setUp(answers: (Settled | Error)[]) {
  const clock = createFakeClock();
  const stalls: boolean[] = [];
  const settlements: Settlement[] = [];
  const announced: string[] = [];
  const material = signerMaterial();
  const sent: SendOrder[] = [];
  const deliver = createDeliver({
    clock,
    signers: { materialFor: () => material, forget() {}, forgetAll() {} },
    headerVault: createHeaderVault(vault),
    sender: {
      async send(order) {
        sent.push(order);
        const body = { ended: true, received: () => Buffer.from("ok"), done: Promise.resolve() };
        return { kind: "responded", status: 200, retryAfter: undefined, head: null, durationMs: 12, body };
      },
      close() {},
    },
    store: {
      async settle(settlement) {
        settlements.push(settlement);
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer ?? { kind: "settled", attempt: logged };
      },
      async completeResponseBody() {},
    },
    retry: createRetryPolicy([1_000], () => 0.5),
    announce: (_settlement, kind) => void announced.push(kind),
    onStorageStalled: (stalled) => void stalls.push(stalled),
  });
  return { clock, stalls, settlements, announced, sent, deliver };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("one attempt", () => {
  test("is recorded, and then announced", async () => {
    const { deliver, settlements, announced, stalls } = setUp([]);
    expect(await deliver(delivery, route)).toMatchObject({
      kind: "settled",
      answered: true,
      next: { kind: "delivered" },
    });
    expect(settlements).toHaveLength(1);
    expect([announced, stalls]).toEqual([["settled"], []]);
  });

  test("carries the headers of its webhook, which are sealed until then", async () => {
    const { deliver, sent } = setUp([]);
    const headers = [["X-Key", "k"]] as const;
    const sealedHeaders = createHeaderVault(vault).seal(delivery.tenantId, headers);
    await deliver({ ...delivery, sealedHeaders }, route);
    await deliver(delivery, route);
    expect(sent.map((order) => order.headers)).toEqual([[["X-Key", "k"]], []]);
  });

  test("is recorded as soon as the disk has room, and is not sent again", async () => {
    const { deliver, clock, settlements, announced, sent, stalls } = setUp([fullDisk(), fullDisk()]);
    const delivered = deliver(delivery, route);
    await turn();
    expect([announced, stalls]).toEqual([[], [true]]);
    clock.advance(1_000);
    await turn();
    clock.advance(1_000);
    await delivered;
    expect([settlements.length, sent.length]).toEqual([3, 1]);
    expect([announced, stalls]).toEqual([["settled"], [true, false]]);
  });

  test("that can never be recorded does not hold up the others for ever", async () => {
    const { deliver, clock, announced, stalls } = setUp([fullDisk(), new Error("The table is broken")]);
    const outcome = deliver(delivery, route).catch((error: Error) => error.message);
    await turn();
    clock.advance(1_000);
    expect(await outcome).toBe("The table is broken");
    expect([announced, stalls]).toEqual([[], [true, false]]);
  });

  test("to an account that is gone is not announced", async () => {
    const { deliver, announced } = setUp([{ kind: "gone", attempt: null }]);
    expect(await deliver(delivery, route)).toMatchObject({ kind: "gone" });
    expect(announced).toEqual([]);
  });

  test("of a record that a replay has replaced is announced like one of an overtaken run: it is in the log", async () => {
    const { deliver, announced } = setUp([{ kind: "gone", attempt: logged }]);
    expect(await deliver(delivery, route)).toMatchObject({ kind: "gone" });
    expect(announced).toEqual(["superseded"]);
  });

  test("does not start once the way is closed", async () => {
    const { deliver, sent } = setUp([]);
    expect(await deliver(delivery, { ...route, isClosed: () => true })).toMatchObject({ kind: "aborted" });
    expect(sent).toEqual([]);
  });
});
