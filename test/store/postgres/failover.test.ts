import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isUnavailable } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { OutcomeUnknown } from "../../../src/store/postgres/faults.ts";
import { leaseMs } from "../../../src/store/postgres/nodes.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { describeWithOwnServer, usePostgres } from "../../support/postgres.ts";
import { administer, type OwnServer, startFastServer } from "../../support/postgres-server.ts";
import { bytes, newTenant, settlementOf, untyped } from "../../support/store-factory.ts";

const everything = { roomFor: () => Number.POSITIVE_INFINITY };

describeWithOwnServer("a failover to a standby that lacks the last commits", () => {
  const postgres = usePostgres();

  /** The standby is a copy of the files at a moment between two runs. */
  async function keepStandby(server: OwnServer): Promise<void> {
    await server.stop("fast");
    // With owners and modes, which the server insists on.
    spawnSync("cp", ["-a", join(server.folder, "data"), join(server.folder, "standby")]);
    await server.start();
  }

  async function failOver(server: OwnServer): Promise<void> {
    await server.stop("immediate");
    rmSync(join(server.folder, "data"), { recursive: true });
    renameSync(join(server.folder, "standby"), join(server.folder, "data"));
    await server.start();
  }

  async function openNode(url: string) {
    const opened = await openPostgresStore({ url, clock: systemClock, durability: "waived" });
    postgres.cleanUpFirst(() => opened.store.close());
    const told: string[] = [];
    opened.store.onChange(({ kind }) => told.push(kind));
    let lost = 0;
    opened.lease.onChange({ lost: () => (lost += 1), rejoined() {}, confirmed() {}, rescued() {}, unowned() {} });
    return { ...opened, told, lost: () => lost };
  }

  test("is lived through by both nodes: they accept, settle and heed again, and forget what never was", async () => {
    const server = await startFastServer();
    postgres.cleanUpFirst(() => server.remove());
    await administer(server, "create database relay");
    const url = server.url("relay");
    const nodes = [await openNode(url), await openNode(url)] as const;
    const [here, there] = nodes;
    const made = newTenant({ urls: ["https://a.example/hook"] });
    const { key: tenantKey } = await here.store.createTenant(made, systemClock.now());
    const accept = ({ store }: (typeof nodes)[number]) =>
      store.acceptEvents({ tenantKey, apiKeyId: made.apiKey.id, events: [untyped(bytes("{}"))], ...everything });
    /** As clients do after a 503. */
    async function persist<T>(run: () => Promise<T>): Promise<T> {
      for (;;) {
        try {
          return await run();
        } catch (error) {
          if (!(isUnavailable(error) || error instanceof OutcomeUnknown)) throw error;
          await Bun.sleep(50);
        }
      }
    }
    for (const node of nodes) for (let n = 0; n < 3; n++) await accept(node);
    await keepStandby(server);

    const lost = await Promise.all(nodes.map((node) => persist(() => accept(node))));
    await persist(() => here.store.suspend(tenantKey, "operator", systemClock.now()));
    await failOver(server);

    for (const node of nodes) expect((await persist(() => accept(node))).eventIds).toHaveLength(1);
    for (const node of nodes) while (!(node.lost() > 0 && node.lease.mayStart())) await Bun.sleep(20);
    // What had been accepted is not there, so its outcome has nowhere to go.
    for (const [i, { deliveries }] of lost.entries()) {
      for (const delivery of deliveries) {
        const settlement = settlementOf(delivery, "delivered", systemClock.now());
        expect(await nodes[i]?.store.settle(settlement)).toMatchObject({ kind: "gone" });
      }
    }
    const began = performance.now();
    await here.store.endSession("s1", systemClock.now());
    expect(performance.now() - began).toBeLessThan(leaseMs / 2);
    expect([here.told.at(-1), there.told.at(-1)]).toEqual(["session_ended", "session_ended"]);
    expect((await here.lease.nodes()).filter(({ isAlive }) => isAlive)).toHaveLength(2);
  });
});
