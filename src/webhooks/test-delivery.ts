import type { HeaderVault } from "../delivery/own-headers.ts";
import type { AccountPace } from "../delivery/queue/account-pace.ts";
import { buildRequest } from "../delivery/request.ts";
import type { Sender } from "../delivery/sender.ts";
import type { Signers } from "../delivery/signers.ts";
import { judge } from "../delivery/verdict.ts";
import type { Attempt, DueDelivery } from "../domain/delivery.ts";
import { accountGone } from "../domain/standing.ts";
import { type Tenant, tierInForce } from "../domain/tenant.ts";
import { limitsOf, type Webhook } from "../domain/webhook.ts";
import type { Clock } from "../lib/clock.ts";
import { encodeEventId, nextEventSeq, randomTail } from "../lib/id.ts";
import { Interrupter } from "../lib/interruption.ts";
import type { PreviewedDelivery } from "../store/store.ts";

/** The default payload of a test event. It is signed and sent like any other, and stored nowhere. */
const samplePayload = Buffer.from(
  '{"event_type":"postrider.test","message":"This is a test event. Its signature is real, its content is not."}',
);

export interface TestDeliveryDeps {
  signers: Signers;
  headerVault: Pick<HeaderVault, "open">;
  sender: Sender;
  clock: Clock;
  pace: Pick<AccountPace, "take">;
}

export interface TestAttempt extends Attempt {
  /** Receivers log it; nothing is stored under it. */
  readonly eventId: string;
}

export interface TestDelivery {
  /**
   * Sends one signed event to a webhook and returns the outcome; no retry, no record.
   * @throws unauthenticated `account_gone` when the account is deleted in the meantime
   */
  send(tenant: Tenant, webhook: Webhook, payload?: Uint8Array): Promise<TestAttempt>;
  /** Breaks off the tests of an account that is gone. */
  stopTenant(tenantKey: number): void;
}

export function createTestDelivery({ signers, headerVault, sender, clock, pace }: TestDeliveryDeps): TestDelivery {
  const underWay = new Set<{ readonly tenantKey: number; readonly interrupter: Interrupter }>();

  async function send(
    tenant: Tenant,
    webhook: Webhook,
    payload: Uint8Array,
    interrupter: Interrupter,
  ): Promise<TestAttempt> {
    const now = clock.now();
    const eventSeq = nextEventSeq(0, now);
    const delivery: DueDelivery = {
      deliveryKey: 0,
      tenantKey: tenant.key,
      tenantId: tenant.id,
      tier: tierInForce(tenant),
      webhookKey: webhook.key,
      url: webhook.url,
      limits: limitsOf(webhook),
      sealedHeaders: webhook.sealedHeaders,
      eventSeq,
      eventId: encodeEventId(eventSeq, randomTail()),
      payload,
      trace: null,
      run: 1,
      attemptsInRun: 0,
      attempts: 0,
      replayKey: null,
      replayGroupId: null,
      orderHash: null,
    };
    const material = await signers.materialFor(tenant.key, tenant.id);
    const headers = headerVault.open(tenant.id, webhook.sealedHeaders);
    // A test goes out immediately, because somebody is waiting for it; the account's deliveries wait for its token instead.
    pace.take(tenant.key, delivery.tier);
    if (interrupter.aborted) throw accountGone();
    const outcome = await sender.send({ delivery, material, headers, now }, interrupter);
    const verdict = judge(outcome, webhook.url);
    const failure = verdict.kind === "acknowledged" ? null : verdict.failure;
    if (outcome.kind === "responded") await outcome.body.done;
    if (interrupter.aborted) throw accountGone();
    return {
      eventId: delivery.eventId,
      targetWebhook: webhook.url,
      number: 1,
      startedAt: now,
      durationMs: Math.round(outcome.durationMs),
      statusCode: outcome.kind === "responded" ? outcome.status : null,
      errorCode: failure?.code ?? null,
      error: failure?.reason ?? null,
      responseBody: outcome.kind === "responded" ? new TextDecoder().decode(outcome.body.received()) : "",
      answerHead: outcome.kind === "responded" ? outcome.head : null,
      replayGroupId: null,
      isReplayGroupIdCut: false,
    };
  }

  return {
    async send(tenant, webhook, payload = samplePayload) {
      const test = { tenantKey: tenant.key, interrupter: new Interrupter() };
      underWay.add(test);
      try {
        return await send(tenant, webhook, payload, test.interrupter);
      } finally {
        underWay.delete(test);
      }
    },
    stopTenant(tenantKey) {
      for (const test of underWay) if (test.tenantKey === tenantKey) test.interrupter.abort();
    },
  };
}

/**
 * The request of a delivery as it would be sent now, for "copy as curl" and for forwarding to a laptop. It omits the tenant's
 * own headers, whose values no response shows.
 */
export function createPreview({ signers, clock }: Pick<TestDeliveryDeps, "signers" | "clock">) {
  return async function preview(
    delivery: PreviewedDelivery,
  ): Promise<{ headers: Record<string, string>; body: string }> {
    const material = await signers.materialFor(delivery.tenantKey, delivery.tenantId);
    const { headers, body } = buildRequest(delivery, material, clock.now());
    return { headers: { ...headers }, body: body.toString("utf8") };
  };
}
