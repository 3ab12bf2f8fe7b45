import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { fuzz, reportFuzz } from "../../support/fuzz.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { seedAccount } from "../../support/seeded-account.ts";
import { startTestApp, type TestApp } from "../../support/test-app.ts";
import { addTenant, changes } from "./model/commands.ts";
import type { Model } from "./model/model.ts";
import { questions } from "./model/questions.ts";
import { type Counts, createReal } from "./model/real.ts";

/**
 * Random walks through the interface, held against plain maps (`model/model.ts`): whatever was done before, every answer
 * is what the rules say. `bun run fuzz model --times N` takes N walks.
 */
const { times, seed, again } = fuzz("model", 30);

let server: TestApp;
let receiver: Receiver;
beforeAll(async () => {
  // The model knows no webhook that is disabled, and one of its receivers answers 410.
  const env = { POSTRIDER_RETRY_SCHEDULE: "1ms,1ms", POSTRIDER_LOG_LEVEL: "error", POSTRIDER_DISABLE_AFTER: "0" };
  server = await startTestApp({ env });
  const tries = new Map<string, number>();
  receiver = startReceiver({
    answer({ path, headers }) {
      if (path.endsWith("/gone")) return new Response(null, { status: 410 });
      const key = `${path} ${headers.get("service-event-id")}`;
      const nth = (tries.get(key) ?? 0) + 1;
      tries.set(key, nth);
      return new Response(null, { status: path.endsWith("/flaky") && nth % 2 === 1 ? 503 : 204 });
    },
  });
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
});

test(`${times} walks through the interface (again: ${again})`, async () => {
  const document = (await server.request("GET", "/openapi.json")).body;
  const seen = new Set<string>();
  const counts: Counts = { commands: 0, requests: 0 };
  // Events with several records are where the rules of replays tell.
  const tiers = fc.constantFrom("enterprise", "business", "free");
  const commands = fc.commands([...changes, ...questions], { maxCommands: 100, size: "max" });
  await fc.assert(
    fc.asyncProperty(tiers, commands, async (tier, walk) => {
      const real = createReal(server, document, receiver.url, counts);
      const model: Model = { tenants: [] };
      // To hash a password takes longer than most walks.
      addTenant(model.tenants, await seedAccount(server, { tier }), tier);
      await fc.asyncModelRun(() => ({ model, real }), walk);
      for (const { events, replays, isDeleted } of model.tenants) {
        if (events.length > 0) seen.add("events");
        if (isDeleted) seen.add("deletions");
        for (const { kind, status, queued, skipped } of replays) {
          if (queued > 0) seen.add(kind);
          if (skipped > 0) seen.add("skipped");
          if (status === "cancelled" && queued === 0) seen.add("cancelled");
        }
      }
    }),
    { numRuns: times, seed },
  );
  reportFuzz(`${times} walks: ${counts.commands} commands, ${counts.requests} requests`);
  // A walk that does nothing proves nothing. Thirty may miss one of the rarer things, a hundred do not.
  const things = ["all", "cancelled", "deletions", "events", "failed", "single", "skipped", "timeline"];
  if (times >= 100) expect([...seen].sort()).toEqual(things);
  else if (times >= 30) expect(things.filter((thing) => !seen.has(thing)).length).toBeLessThan(4);
}, 86_400_000);
