import { issueSession, type SeededAccount, seedAccount } from "../../../support/seeded-account.ts";
import type { TestApp } from "../../../support/test-app.ts";
import type { TokenKind } from "./requests.ts";
import type { KnownValues } from "./values.ts";

/** Operations after which an account is another one: each request gets one of its own. */
const consuming = [
  "DELETE /v1/tenants",
  "POST /v1/tenants/auth/logout",
  "POST /v1/tenants/upgrade",
  "POST /v1/tenants/api-keys/rotate",
];

/** Two accounts with events, records of every state, replays and keys, and what there is to know of them. */
export async function createWorld(server: TestApp, receiverUrl: string, now: () => number) {
  const [own, other] = [await server.account(), await server.account()];
  // Its webhooks are changed, and it has no event that could go there.
  const registrar = await seedAccount(server, { tier: "enterprise" });
  const guarded = await server.account();
  const ids: string[] = [];
  for (const account of [own, other]) {
    await account.setTier("business");
    await account.put("/v1/tenants/webhooks", [
      { webhook_url: `${receiverUrl}/${account.id}/ok` },
      { webhook_url: `${receiverUrl}/${account.id}/gone` },
    ]);
    for (let n = 0; n < 3; n += 1) ids.push((await account.ingest({ n, type: "order.paid" })).body.eventId);
    await server.app.whenIdle();
    await account.post("/v1/events/replays/failed", { replayGroupId: "before" });
  }
  await server.app.whenIdle();
  const webhooks = (await own.get("/v1/tenants/webhooks")).body;
  const replays = (await own.get("/v1/events/replays")).body.replays;
  const times = (await own.get("/v1/events")).body.events.map(
    ({ ingestionTimestamp }: { ingestionTimestamp: string }) => ingestionTimestamp,
  );
  const webhookIds = webhooks.map(({ id }: { id: string }) => id);
  const replayIds = replays.map(({ id }: { id: string }) => id);

  const known: KnownValues = {
    eventId: ids,
    loginId: [own.id, other.id, "ada@example.com"],
    password: [own.password, "Corr3ct#Horse", "weak"],
    current_password: [guarded.password],
    new_password: ["Corr3ct#Horse", guarded.password],
    email: ["ada@example.com", "Ada@Example.com"],
    webhook_url: [`${receiverUrl}/a`, `${receiverUrl}/b`, "https://shop.example/", "https://127.0.0.1/", "ftp://a"],
    startTime: [...times, "2026-03-01"],
    endTime: [...times, "2026-03-01"],
    from: [...times, "2026-03-01"],
    to: [...times, "2026-03-01"],
    bucket: ["1m", "5m", "1h", "90s"],
    webhook: [...webhookIds, ...webhooks.map(({ url }: { url: string }) => url)],
    type: ["order.paid"],
    code: ["http_status"],
    status: [410],
    "/v1/events/{id} id": ids,
    "/v1/events/{id}/attempts id": ids,
    "/v1/events/{id}/delivery id": ids,
    "/v1/events/replays/{id} id": replayIds,
    "/v1/tenants/webhooks/{id}/test id": webhookIds,
    "/v1/tenants/webhooks/{id}/enable id": webhookIds,
    "/v1/tenants/{tenantId}/status tenantId": [own.id, other.id],
    "/v1/tenants/{tenantId}/jwks.json tenantId": [own.id, other.id],
  };

  async function accountFor(operation: string): Promise<SeededAccount> {
    if (consuming.includes(operation)) return seedAccount(server);
    if (operation === "PUT /v1/tenants/webhooks") return registrar;
    return operation === "PUT /v1/tenants/password" ? guarded : own;
  }

  return {
    known,
    /** What must not stand in any answer that refuses something. */
    secrets: [own.password, own.jwt, own.apiKey, other.apiKey, guarded.password],
    async tokenFor(operation: string, kind: TokenKind, takesApiKey: boolean): Promise<string | null> {
      const { apiKey, id } = await accountFor(operation);
      const jwt = issueSession(server, id, now());
      switch (kind) {
        case "right":
          return takesApiKey ? apiKey : jwt;
        case "of another account": {
          if (takesApiKey) return other.apiKey;
          return consuming.includes(operation) ? jwt : issueSession(server, other.id, now());
        }
        case "of another kind":
          return takesApiKey ? jwt : apiKey;
        case "expired":
          return issueSession(server, id, now() - 3 * 60 * 60 * 1000);
        case "garbage":
          return "eyJhbGciOiJub25lIn0.e30.";
        case "none":
          return null;
      }
    },
  };
}

export type FuzzWorld = Awaited<ReturnType<typeof createWorld>>;
