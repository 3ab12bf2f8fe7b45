import { type Api, loginTenant, type Tenant } from "../bench/tenants.ts";
import { type Books, between, repeat } from "./books.ts";

/** What goes on beside the events: accounts that come and go, dashboards, lists, replays. */
export interface VisitorDeps {
  api: Api;
  books: Books;
  isOver(): boolean;
}

const churnBatch = 50;

/** An account is made, used as a customer uses it, all its keys rotated, and deleted with what it has. */
export async function churn({ api, books, isOver }: VisitorDeps, webhookUrl: string): Promise<void> {
  await repeat(
    isOver,
    () => between(200, 600),
    () =>
      books.run("accounts made, used and deleted", async () => {
        const tenant = await loginTenant(api);
        await api("PUT", "/v1/tenants/webhooks", tenant.session, [{ webhook_url: webhookUrl, name: "soak" }]);
        const events = Array.from({ length: churnBatch }, (_, n) => ({ payload: { n, note: "x".repeat(200) } }));
        await api("POST", "/v1/ingest/batch", tenant.apiKey, { events });
        const { key } = await api<{ key: string }>("POST", "/v1/tenants/api-keys/rotate", tenant.session, {
          grace_period_seconds: 1,
        });
        await api("POST", "/v1/tenants/signing-keys/rotate", tenant.session, { activate_after_seconds: 0 });
        await api("POST", "/v1/tenants/signing-secret/rotate", tenant.session, {});
        const { eventId } = await api<{ eventId: string }>("POST", "/v1/ingest", key, { payload: { last: true } });
        await api("GET", `/v1/events/${eventId}/attempts`, tenant.session);
        await api("GET", "/v1/events?size=100", tenant.session);
        await api("POST", "/v1/events/replays/all", tenant.session, { replayGroupId: "soak" });
        await api("DELETE", "/v1/tenants", tenant.session);
      }),
  );
}

/** A dashboard that looks on for some seconds, is cut, and comes back from where it was. */
export async function watch({ api, books, isOver }: VisitorDeps, sessionOf: () => string): Promise<void> {
  let lastEventId: string | undefined;
  await repeat(
    isOver,
    () => between(50, 500),
    () =>
      books.run("streams opened", async () => {
        const abort = new AbortController();
        const headers = {
          Authorization: `Bearer ${sessionOf()}`,
          ...(lastEventId !== undefined && { "Last-Event-ID": lastEventId }),
        };
        const response = await fetch(`${api.base}/v1/stream`, { headers, signal: abort.signal });
        if (response.status !== 200 || !response.body) throw new Error(`GET /v1/stream: ${response.status}`);
        const timer = setTimeout(() => abort.abort(), between(1_000, 8_000));
        const decoder = new TextDecoder();
        try {
          for await (const chunk of response.body) {
            lastEventId =
              decoder
                .decode(chunk, { stream: true })
                .match(/(?<=\nid: )\d+-\d+(?=\n)/g)
                ?.at(-1) ?? lastEventId;
          }
        } catch (error) {
          if (!abort.signal.aborted) throw error;
        } finally {
          clearTimeout(timer);
        }
      }),
  );
}

/** Somebody who pages through the events. */
export async function read({ api, books, isOver }: VisitorDeps, tenants: () => Tenant): Promise<void> {
  await repeat(
    isOver,
    () => between(100, 300),
    () =>
      books.run("lists read", async () => {
        const { session } = tenants();
        const page = Math.floor(between(0, 20));
        const { events } = await api<{ events: { eventId: string }[] }>("GET", `/v1/events?page=${page}`, session);
        await api("GET", `/v1/events/state/${Math.random() < 0.5 ? "DELIVERED" : "FAILED"}?size=50`, session);
        const [first] = events;
        if (first) await api("GET", `/v1/events/${first.eventId}`, session);
        await api("GET", "/v1/tenants/webhooks", session);
        await api("GET", "/v1/stats", session);
      }),
  );
}

/** What was sent in the last seconds goes out again. */
export async function replay({ api, books, isOver }: VisitorDeps, tenants: () => Tenant): Promise<void> {
  await repeat(
    isOver,
    () => between(2_000, 4_000),
    () =>
      books.run("replays", async () => {
        const { session } = tenants();
        const [startTime, endTime] = [new Date(Date.now() - 10_000), new Date()].map((time) => time.toISOString());
        await api("POST", "/v1/events/replays/timeline", session, { replayGroupId: "soak", startTime, endTime });
      }),
  );
}
