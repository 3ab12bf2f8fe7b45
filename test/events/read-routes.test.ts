import { expect, test } from "bun:test";
import { type EventReadRouteDeps, eventReadRoutes } from "../../src/events/read-routes.ts";
import type { Store } from "../../src/store/store.ts";
import { refusalOf } from "../support/store-factory.ts";

/** What a route answers from a store that has only some verbs. */
async function ask(path: string, store: Partial<Store>, request: Record<string, unknown>) {
  const route = eventReadRoutes({ store } as EventReadRouteDeps).find((each) => each.path === path);
  return route?.handle({ tenant: { key: 1, id: "t1" }, ...request } as never);
}

const none = { next: async () => [], ended: true };

test("an event that is erased while it is asked for is not found", async () => {
  const answer = ask("/v1/events/:id", { records: async () => none }, { params: { id: "evt_1" } });
  expect(await refusalOf(answer)).toBe("not_found event_not_found");
});

test.each(["/v1/events", "/v1/events/state/:state"])("%s tells whether its client still waits", async (path) => {
  const client = new AbortController();
  const seen: (boolean | undefined)[] = [];
  const page: Store["page"] = async ({ isAbandoned }) => {
    seen.push(isAbandoned?.());
    client.abort();
    seen.push(isAbandoned?.());
    return { records: none, total: 0, totalIsExact: true };
  };
  const raw = new Request("http://localhost/", { signal: client.signal });
  await ask(path, { page }, { query: { page: 0, size: 1, payload: "true" }, params: { state: "FAILED" }, raw });
  expect(seen).toEqual([false, true]);
});
