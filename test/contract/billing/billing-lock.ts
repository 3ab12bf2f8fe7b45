import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, type World } from "../../support/store-factory.ts";
import { payingIn } from "./paying.ts";

/** `billingLock` of `src/store/opened.ts`, for any backend. */
export function billingLockContract(backend: StoreBackend): void {
  describe(`${backend.name} has one at work for a billing account:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const { verified } = payingIn(() => world);

    test("others of the account wait, and those of other accounts do not", async () => {
      const [one, other] = [await verified(), await verified()];
      const { promise: gate, resolve: open } = Promise.withResolvers<void>();
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const seen: string[] = [];
      const first = world.billingLock.run(one.accountKey, async () => {
        begin();
        await gate;
        seen.push("the first has ended");
        return 1;
      });
      await begun;
      const second = world.billingLock.run(one.accountKey, async () => void seen.push("the second"));
      await world.billingLock.run(other.accountKey, async () => void seen.push("another account"));
      open();
      expect(await first).toBe(1);
      await second;
      expect(seen).toEqual(["another account", "the first has ended", "the second"]);
    });

    test("one that fails tells its caller, and the next one's turn comes", async () => {
      const { accountKey } = await verified();
      const failing = world.billingLock.run(accountKey, () => Promise.reject(new Error("declined")));
      const next = world.billingLock.run(accountKey, async () => "next");
      await expect(failing).rejects.toThrow("declined");
      expect(await next).toBe("next");
    });

    test("of many that come at once none is with another", async () => {
      const { accountKey } = await verified();
      let inside = 0;
      const most = await Promise.all(
        Array.from({ length: 20 }, () =>
          world.billingLock.run(accountKey, async () => {
            inside += 1;
            const together = inside;
            await world.store.books(accountKey);
            inside -= 1;
            return together;
          }),
        ),
      );
      expect(Math.max(...most)).toBe(1);
    });
  });
}
