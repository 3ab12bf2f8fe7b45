import * as v from "valibot";
import { type ErasedEndpoint, endpoint, ok } from "./endpoint.ts";
import type { Readiness } from "./readiness.ts";

const Status = v.object({ status: v.literal("ok") });

/** Liveness and readiness, for whatever starts and watches the program. */
export function healthRoutes({ readiness }: { readiness: Readiness }): ErasedEndpoint[] {
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
          "The database takes writes, what is encrypted in it opens, the disk is above its floor, and no write is stuck; otherwise 503. What the database says is asked at most once a second.",
        access: "none",
        responses: { 200: { description: "It can.", schema: Status, example: { status: "ok" } } },
      },
      async () => {
        const refusal = await readiness();
        if (refusal) throw refusal;
        return ok({ status: "ok" });
      },
    ),
  ];
}
