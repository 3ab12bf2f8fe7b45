import { afterEach, beforeEach, expect, test } from "bun:test";
import { parseEventId } from "../../../src/lib/id.ts";
import { describeWithPostgres } from "../../support/postgres.ts";
import { createPostgresWorlds, type PostgresWorlds } from "../../support/postgres-worlds.ts";
import { bytes, utf8 } from "../../support/store-factory.ts";

describeWithPostgres("an event whose payload is damaged", () => {
  let nodes: PostgresWorlds;
  beforeEach(async () => {
    nodes = await createPostgresWorlds(1);
  });
  afterEach(() => nodes.end());

  /** Puts a view in the place of the table: what is read from it of this event fails as the server says of a lost part. */
  async function lose(eventId: string): Promise<void> {
    const seq = parseEventId(eventId)?.seq;
    await nodes.pool.write("alter table event rename to kept_event");
    await nodes.pool.write(`create function lost() returns bytea language plpgsql stable as
      $$ begin raise exception 'missing chunk number 0 for toast value 1' using errcode = 'XX001'; end $$`);
    await nodes.pool.write(`create view event as select seq, tenant_key, id_tail, type, trace, ordering_key,
      case when seq = ${seq} then lost() else payload end as payload from kept_event`);
  }

  test("is not delivered, and keeps no other event of its webhook waiting", async () => {
    const [world] = nodes.worlds;
    if (!world) throw new Error("There is no node");
    const tenant = await world.tenant({ urls: ["https://a.example/hook"] });
    const payloads = ["1", "2", "3"].map(bytes);
    const { eventIds } = await world.accept(tenant, { payloads });
    await lose(eventIds[1] ?? "");
    const due = await world.claim(tenant);
    expect(due.map(({ payload }) => utf8(payload))).toEqual(["1", "3"]);
    for (const delivery of due) await world.settle(delivery, "delivered");
    // It is not asked for again and again.
    expect(await world.claim(tenant)).toEqual([]);
    expect([...(await nodes.pool.read("select event_seq::float8 as seq, owner is null as due from pending"))]).toEqual([
      { seq: parseEventId(eventIds[1] ?? "")?.seq, due: false },
    ]);
  });
});
