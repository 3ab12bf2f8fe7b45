import { expect } from "bun:test";
import { until } from "../../../support/api-server.ts";
import { checkAnswer, type OpenApiDocument } from "../../../support/openapi-check.ts";
import type { Answer, RequestOptions, TestApp } from "../../../support/test-app.ts";
import type { ModelEvent, ModelRecord, ModelTenant } from "./model.ts";

/** What was done in all walks. */
export interface Counts {
  commands: number;
  requests: number;
}

/** The server, as its clients see it. Every answer has to be one that the document has. */
export function createReal(server: TestApp, document: OpenApiDocument, receiverUrl: string, counts: Counts) {
  async function ask(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    counts.requests += 1;
    const answer = await server.request(method, path, options);
    if (!path.startsWith("/operator")) checkAnswer(document, method, path, { ...answer, bodyText: answer.text });
    return answer;
  }

  const get = (tenant: ModelTenant, path: string) => ask("GET", path, { token: tenant.jwt });

  return {
    counts,
    server,
    ask,
    get,
    urlOf: (nth: number, receiver: string) => `${receiverUrl}/${nth}/${receiver}`,
    /** Resolves when every run of the tenant has ended. */
    async whenSettled(tenant: ModelTenant): Promise<void> {
      await until(
        async () => {
          await server.app.whenIdle();
          const replays = (await get(tenant, "/v1/events/replays?size=100")).body.replays;
          const { total } = (await get(tenant, "/v1/events/state/PENDING?size=1")).body;
          return total === 0 && replays.every(({ status }: { status: string }) => isOver(status));
        },
        (isSettled) => isSettled,
      );
    },
    /** A record as the lists show it, without what only the server can know. */
    shown: (
      { id, payload }: ModelEvent,
      tenant: ModelTenant,
      { webhook, state, attempts, label, learned }: ModelRecord,
    ) => ({
      eventId: id,
      tenantId: tenant.id,
      state,
      ingestionTimestamp: expect.any(String),
      targetWebhook: webhook?.url ?? "",
      errorReason: state === "DELIVERED" ? null : expect.any(String),
      originalPayload: JSON.parse(payload),
      attempts,
      lastAttemptAt: attempts === 0 ? null : expect.any(String),
      lastDurationMs: attempts === 0 ? null : expect.any(Number),
      nextAttemptAt: null,
      errorCode: state === "DELIVERED" ? null : webhook === null ? "no_webhook" : "http_status",
      statusCode: state === "DELIVERED" || webhook === null ? null : expect.any(Number),
      eventType: null,
      replayGroupId: label,
      ...learned,
    }),
  };
}

const isOver = (status: string) => status === "completed" || status === "cancelled";

export type Real = ReturnType<typeof createReal>;
