import * as v from "valibot";
import { shuttingDown } from "../domain/errors.ts";
import { type ErasedEndpoint, endpoint, ok } from "./endpoint.ts";
import type { Readiness } from "./readiness.ts";

const Status = v.object({ status: v.literal("ok") });

export interface HealthDeps {
  readiness: Readiness;
  /** The server is about to end: a load balancer should send it no more requests. */
  isStopping(): boolean;
}

/** Liveness and readiness, for whatever starts and monitors the program. */
export function healthRoutes({ readiness, isStopping }: HealthDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/healthz",
        tag: "Operation",
        summary: "Check that the process is alive",
        access: "none",
        responses: { 200: { description: "The process is alive.", schema: Status, example: { status: "ok" } } },
      },
      () => ok({ status: "ok" }),
    ),
    endpoint(
      {
        method: "GET",
        path: "/readyz",
        tag: "Operation",
        summary: "Check that the server accepts events",
        description:
          "200 when the database accepts writes, its encrypted values can be decrypted, enough disk space is free, no write is " +
          "stuck, the server is in touch with a database that others share, and it is not shutting down; otherwise 503. The database is checked at most once a second.",
        access: "none",
        responses: { 200: { description: "The server accepts events.", schema: Status, example: { status: "ok" } } },
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
