import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import type { Store } from "../../../../src/store/store.ts";
import { until } from "../../../support/api-server.ts";
import { seedAccount } from "../../../support/seeded-account.ts";
import type { TestApp } from "../../../support/test-app.ts";
import { createClient } from "./client.ts";
import type { Witness } from "./witness.ts";

interface World {
  server: TestApp;
  witness: Witness;
}

/** What a client does, and how everything must be when it has done it. */
export interface Story {
  /** Nothing fails yet. */
  prepare(world: World): Promise<{ tell(): Promise<{ check(): Promise<void> }> }>;
  /** Some of the verbs that have to be among its calls. */
  readonly verbs: readonly (keyof Store)[];
}

let told = 0;

/** Also this question may be the one that is answered 503. */
const isSettled = ({ body }: { body: { events?: { state: string }[] } }) =>
  body.events?.every(({ state }) => state !== "PENDING") === true;

const isRecordSettled = ({ body }: { body: { state: string }[] | { code: string } }) =>
  Array.isArray(body) && body.every(({ state }) => state !== "PENDING");

/** An account with its keys, secrets and sessions. */
export const manageAccount: Story = {
  verbs: ["createTenant", "findTenant", "rotateApiKey", "rotateSigningSecret", "replacePassword", "suspend", "settle"],
  async prepare({ server, witness }) {
    const { ask } = await createClient(server);
    told += 1;
    const path = `/${told}/ok`;
    const operator = { token: server.operatorToken };

    return {
      async tell() {
        const webhooks = [{ webhook_url: `${witness.url}${path}` }];
        const { tenant_id: id, password } = (await ask("POST", "/v1/tenants", 201, { body: { webhooks } })).body;
        const login = { loginId: id, password };
        let token: string = (await ask("POST", "/v1/tenants/auth/login", 200, { body: login })).body.token;
        await ask("GET", "/v1/tenants/me", 200, { token });
        await ask("GET", `/v1/tenants/${id}/status`, 200);

        const [{ key: oldKey }] = (await ask("GET", "/v1/tenants/api-keys", 200, { token })).body;
        const { key } = (await ask("POST", "/v1/tenants/api-keys/rotate", 201, { token })).body;
        const { secret: oldSecret } = (await ask("GET", "/v1/tenants/signing-secret", 200, { token })).body;
        const { secret } = (await ask("POST", "/v1/tenants/signing-secret/rotate", 201, { token })).body;
        await ask("POST", "/v1/tenants/signing-keys/rotate", 201, { token });
        await ask("POST", "/v1/ingest", 401, { token: oldKey, body: { payload: {} } });
        const { eventId } = (await ask("POST", "/v1/ingest", 202, { token: key, body: { payload: {} } })).body;

        await ask("PUT", `/operator/tenants/${id}/tier`, 200, { ...operator, body: { tier: "business" } });
        await ask("POST", `/operator/tenants/${id}/suspend`, 200, operator);
        await ask("POST", "/v1/ingest", 403, { token: key, body: { payload: {} } });
        await ask("POST", `/operator/tenants/${id}/resume`, 200, operator);

        const change = { current_password: password, new_password: "Corr3ct#Horse" };
        token = (await ask("PUT", "/v1/tenants/password", 200, { token, body: change })).body.token;
        const { token: renewed } = (await ask("POST", "/v1/tenants/auth/refresh", 200, { token })).body;
        await ask("POST", "/v1/tenants/auth/logout", 204, { token });
        await ask("GET", "/v1/tenants/me", 401, { token });

        return {
          async check() {
            const session = { token: renewed };
            const keys = (await ask("GET", "/v1/tenants/api-keys", 200, session)).body;
            expect(keys.map((found: { key: string; is_active: boolean }) => [found.key, found.is_active])).toEqual([
              [key, true],
              [oldKey, false],
            ]);
            const { keys: published } = (await ask("GET", `/v1/tenants/${id}/jwks.json`, 200)).body;
            expect(published).toHaveLength(2);
            expect((await ask("GET", "/v1/tenants/me", 200, session)).body.tier).toBe("business");
            await server.app.whenIdle();
            await until(() => server.request("GET", "/v1/events", session), isSettled);
            const { events, total } = (await ask("GET", "/v1/events", 200, session)).body;
            expect([total, events[0].eventId, events[0].state]).toEqual([1, eventId, "DELIVERED"]);

            // Whoever still has the secret from before the rotation can verify as well.
            const [received, ...more] = witness.received(path);
            expect(more).toEqual([]);
            const { headers, body } = received ?? { headers: new Headers(), body: "" };
            const content = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
            const signatures = headers.get("webhook-signature")?.split(" ") ?? [];
            for (const known of [secret, oldSecret]) {
              const hmac = createHmac("sha256", Buffer.from(known.slice("whsec_".length), "base64")).update(content);
              expect(signatures).toContain(`v1,${hmac.digest("base64")}`);
            }

            await ask("DELETE", "/v1/tenants", 204, session);
            await ask("GET", `/v1/tenants/${id}/status`, 404);
            await ask("GET", "/v1/tenants/me", 401, session);
          },
        };
      },
    };
  },
};

/** Events, their deliveries and their replays. */
export const sendEvents: Story = {
  verbs: ["acceptEvents", "settle", "claim", "replayEvent", "startReplay", "queueReplayBatch", "replaceWebhooks"],
  async prepare({ server, witness }) {
    const { ask } = await createClient(server);
    const { jwt: token, apiKey } = await seedAccount(server, { tier: "business" });
    told += 1;
    const paths = [`/${told}/ok`, `/${told}/flaky`] as const;
    const entries = paths.map((path) => ({ webhook_url: `${witness.url}${path}` }));
    /** Asks once everything that is due has been done, mostly. */
    const whenIdle = async (path: string) => {
      await server.app.whenIdle();
      return server.request("GET", path, { token });
    };
    const settled = () => until(() => whenIdle("/v1/events?size=100"), isSettled);

    return {
      async tell() {
        await ask("PUT", "/v1/tenants/webhooks", 200, { token, body: entries });
        const first = { token: apiKey, body: { payload: { n: 1 } }, headers: { "Idempotency-Key": `story-${told}` } };
        const { eventId } = (await ask("POST", "/v1/ingest", 202, first)).body;
        expect((await ask("POST", "/v1/ingest", 202, first)).body.eventId).toBe(eventId);
        const events = [{ payload: { n: 2 } }, { payload: { n: 3 } }];
        await ask("POST", "/v1/ingest/batch", 202, { token: apiKey, body: { events } });
        await settled();

        await ask("GET", "/v1/events?size=2&webhook=nobody", 200, { token });
        await ask("GET", "/v1/events/state/DELIVERED", 200, { token });
        await ask("GET", `/v1/events/${eventId}`, 200, { token });
        await ask("GET", `/v1/events/${eventId}/attempts`, 200, { token });
        await ask("GET", `/v1/events/${eventId}/delivery`, 200, { token });
        await ask("GET", "/v1/stats", 200, { token });
        await ask("GET", "/v1/tenants/webhooks/health", 200, { token });

        const single = { token, body: { eventId, replayGroupId: "single" } };
        await ask("POST", "/v1/events/replays/single", 202, single);
        await settled();
        await ask("POST", "/v1/events/replays/preview", 200, { token, body: { kind: "all" } });
        await ask("POST", "/v1/events/replays/all", 202, { token, body: { replayGroupId: "all" } });
        await until(
          () => whenIdle("/v1/events/replays"),
          ({ body }) => body.replays?.every(({ status }: { status: string }) => status === "completed"),
        );
        await settled();
        await ask("PUT", "/v1/tenants/webhooks", 200, { token, body: [] });
        await ask("POST", "/v1/ingest", 202, { token: apiKey, body: { payload: { n: 4 } } });

        return {
          async check() {
            const { events: records, total } = (await ask("GET", "/v1/events?size=100", 200, { token })).body;
            const shown = records.map(
              (record: { originalPayload: { n: number }; targetWebhook: string; state: string }) => [
                record.originalPayload.n,
                record.targetWebhook.slice(witness.url.length),
                record.state,
              ],
            );
            const pair = (n: number) => paths.map((path) => [n, path, "DELIVERED"]);
            expect(total).toBe(7);
            expect(shown).toEqual([[4, "", "FAILED"], ...pair(3), ...pair(2), ...pair(1)]);

            const { replays } = (await ask("GET", "/v1/events/replays", 200, { token })).body;
            expect(replays).toMatchObject([
              { kind: "all", status: "completed", selected: 3, queued: 6, delivered: 6, failed: 0, superseded: 0 },
              { kind: "single", status: "completed", selected: 1, queued: 2, delivered: 2, failed: 0, superseded: 0 },
            ]);
            // Event 1 was delivered three times, the others twice; each time the flaky one took two attempts.
            expect(paths.map((path) => witness.received(path).length)).toEqual([7, 14]);
            const attempts = (await ask("GET", `/v1/events/${eventId}/attempts`, 200, { token })).body;
            expect(attempts.map(({ number }: { number: number }) => number).sort()).toEqual([
              1, 1, 2, 2, 3, 3, 4, 5, 6,
            ]);
            const { total: sums } = (await ask("GET", "/v1/stats", 200, { token })).body;
            expect(sums.accepted).toBeLessThanOrEqual(4);
            await ask("DELETE", "/v1/tenants", 204, { token });
          },
        };
      },
    };
  },
};

/** Deliveries that stay inside the server, and an account that is erased. */
export const useInbox: Story = {
  verbs: ["inboxDeliveries", "setInboxAnswer", "keepInboxDelivery", "emptyInbox", "deleteTenant", "eraseDeleted"],
  async prepare({ server }) {
    const { ask } = await createClient(server);
    const { id, jwt: token, apiKey } = await seedAccount(server);
    const isGone = () => {
      const client = new Database(join(server.dataDir, "postrider.db"), { readonly: true });
      try {
        return client.query("select 1 from tenant where id = ?1").all(id).length === 0;
      } finally {
        client.close();
      }
    };

    return {
      async tell() {
        const { url } = (await ask("GET", "/v1/inbox", 200, { token })).body;
        await ask("PUT", "/v1/tenants/webhooks", 200, { token, body: [{ webhook_url: url }] });
        await ask("PUT", "/v1/inbox/answer", 200, { token, body: { status: 404 } });
        const event = { token: apiKey, body: { payload: {} } };
        const refused = (await ask("POST", "/v1/ingest", 202, event)).body.eventId;
        await until(() => server.request("GET", `/v1/events/${refused}`, { token }), isRecordSettled);
        await ask("PUT", "/v1/inbox/answer", 200, { token, body: {} });
        const delivered = (await ask("POST", "/v1/ingest", 202, event)).body.eventId;
        await until(() => server.request("GET", `/v1/events/${delivered}`, { token }), isRecordSettled);

        const records = [refused, delivered].map((eventId) => ask("GET", `/v1/events/${eventId}`, 200, { token }));
        expect((await Promise.all(records)).map(({ body: [{ state }] }) => state)).toEqual(["FAILED", "DELIVERED"]);
        const { deliveries } = (await ask("GET", "/v1/inbox", 200, { token })).body;
        expect(new Set(deliveries.map(({ eventId }: { eventId: string }) => eventId))).toEqual(
          new Set([refused, delivered]),
        );
        await ask("DELETE", "/v1/inbox/deliveries", 204, { token });
        expect((await ask("GET", "/v1/inbox", 200, { token })).body.total).toBe(0);

        // Repeated after a 503, so a deletion that was answered 503 has not happened.
        await ask("DELETE", "/v1/tenants", 204, { token });
        await ask("GET", "/v1/inbox", 401, { token });
        await until(isGone, (gone) => gone);
        return {
          async check() {
            await ask("GET", `/v1/tenants/${id}/status`, 404);
            await ask("POST", "/v1/ingest", 401, event);
          },
        };
      },
    };
  },
};
