import * as v from "valibot";
import { unavailable } from "../errors.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import { type ErasedEndpoint, endpoint, ok } from "./endpoint.ts";
import { createSharedProbe } from "./shared-probe.ts";

const Status = v.object({ status: v.literal("ok") });

export interface HealthDeps {
  store: Pick<Store, "probe" | "writeLagMs">;
  clock: Pick<Clock, "monotonicMs">;
  hasRoom(): boolean;
}

/** A write that waits for longer than this is stuck. */
const stuckAfterMs = 5000;

/** Liveness and readiness, for whatever starts and watches the program. */
export function healthRoutes({ store, clock, hasRoom }: HealthDeps): ErasedEndpoint[] {
  const probe = createSharedProbe(() => store.probe(), clock);
  return [
    endpoint(
      {
        method: "GET",
        path: "/healthz",
        tag: "Operation",
        summary: "The process answers",
        access: "none",
        responses: { 200: { description: "It does.", schema: Status, example: { status: "ok" } } },
      },
      () => ok({ status: "ok" }),
    ),
    endpoint(
      {
        method: "GET",
        path: "/readyz",
        tag: "Operation",
        summary: "The server can take events",
        description:
          "The database takes writes, the disk is above its floor, and no write is stuck; otherwise 503. What the database says is asked at most once a second.",
        access: "none",
        responses: { 200: { description: "It can.", schema: Status, example: { status: "ok" } } },
      },
      async () => {
        if (!hasRoom()) throw unavailable("The disk is almost full.", "storage_full", 30);
        if (store.writeLagMs() > stuckAfterMs)
          throw unavailable("The storage does not take writes.", "storage_unavailable", 5);
        await probe();
        return ok({ status: "ok" });
      },
    ),
  ];
}
