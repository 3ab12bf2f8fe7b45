import { expect, test } from "bun:test";
import { parseEventId } from "../../../src/lib/id.ts";
import { sqliteBackend } from "../../support/sqlite-backend.ts";
import { createWorld } from "../../support/store-factory.ts";

const minuteMs = 60_000;

test("an attempt logged by a clock that was ahead hides none of those behind it, unlike one that has just begun", async () => {
  const world = await createWorld(sqliteBackend);
  const tenant = await world.tenant({ urls: ["https://a.example/hook"] });
  const seqOf = async () => parseEventId(await world.event(tenant, "delivered"))?.seq;
  world.clock.step(365 * 24 * 60 * minuteMs);
  await seqOf();
  world.clock.step(-365 * 24 * 60 * minuteMs);
  const [first, second] = [await seqOf(), await seqOf()];
  world.clock.advance(minuteMs);
  await seqOf();
  const now = world.clock.now();
  const { attempts, isMore } = await world.store.keptAnswers({ after: null, before: now - 1, now });
  expect(attempts.map(({ eventSeq }) => eventSeq)).toEqual([first ?? 0, second ?? 0]);
  expect(isMore).toBe(false);
  await world.end();
});
