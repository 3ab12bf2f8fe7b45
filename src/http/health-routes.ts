import * as v from "valibot";
import { shuttingDown } from "../domain/errors.ts";
import { type ErasedEndpoint, endpoint, ok } from "./endpoint.ts";
import type { Readiness } from "./readiness.ts";

const Status = v.object({ status: v.literal("ok") });

export interface HealthDeps {
  readiness: Readiness;
  /** The server is about to end: who shares out requests should send it none. */
  isStopping(): boolean;
}

/** Liveness and readiness, for whatever starts and watches the program. */
export function healthRoutes({ readiness, isStopping }: HealthDeps): ErasedEndpoint[] {
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
          "The database takes writes, what is encrypted in it opens, the disk is above its floor, no write is stuck, and the " +
          "server is not about to end; otherwise 503. What the database says is asked at most once a second.",
        access: "none",
        responses: { 200: { description: "It can.", schema: Status, example: { status: "ok" } } },
      },
      async () => {
        if (isStopping()) throw shuttingDown();
        const refusal = await readiness();
        if (refusal) throw refusal;
        return ok({ status: "ok" });
      },
    ),
  ];
}
