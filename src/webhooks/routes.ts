import type { TellAccount } from "../delivery/own-events.ts";
import type { HeaderVault } from "../delivery/own-headers.ts";
import { byAccount } from "../domain/audit.ts";
import { DomainError, notFound, rateLimited } from "../domain/errors.ts";
import { takes } from "../domain/event-types.ts";
import { webhooksAllowed } from "../domain/limits.ts";
import { deliveriesPaused, refusalOfWork, suspendedByOperator, suspendedForCharge } from "../domain/standing.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Webhook } from "../domain/webhook.ts";
import { listChanged, listTag, type WantedList } from "../domain/webhook-list.ts";
import { toAttemptBody } from "../events/attempt-model.ts";
import { sliceEvent } from "../events/payload.ts";
import { type ErasedEndpoint, endpoint, ok, type Reply } from "../http/endpoint.ts";
import { etag, tagsIn } from "../http/entity-tag.ts";
import { invalidRequest, refusal } from "../http/error-models.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Limit, Limits, Turn } from "../store/limits.ts";
import type { Store } from "../store/store.ts";
import { healthLimits } from "../store/webhook-health.ts";
import { type AccountHub, announceChange } from "../stream/account-change.ts";
import { announceWebhook, type WebhookHub } from "../stream/webhook-change.ts";
import * as m from "./model.ts";
import type { TestAttempt } from "./test-delivery.ts";
import { checkWebhooks, hasMasks, sealHeaders, type UrlPolicy } from "./webhooks.ts";

export interface WebhookRouteDeps {
  store: Pick<Store, "webhooks" | "webhookHealth" | "replaceWebhooks" | "enableWebhook">;
  limits: Limits;
  clock: Clock;
  /** Whether deliveries wait for the operator (`POSTRIDER_PAUSED`). */
  isPaused(): boolean;
  /** The most concurrent attempts to one webhook, for any account. */
  webhookConcurrency: number;
  headerVault: HeaderVault;
  /** What the account may register. */
  policyOf(tenant: Tenant): UrlPolicy;
  log: Log;
  hub: AccountHub & WebhookHub;
  tell: TellAccount;
  /** The same limit as for an ingested event. */
  maxBodyBytes: number;
  /**
   * Sends one signed event. Whatever the receiver does, the outcome is an attempt.
   * @param payload undefined: a sample
   */
  sendTest(tenant: Tenant, webhook: Webhook, payload: Uint8Array | undefined): Promise<TestAttempt>;
}

/** Rules, section 3. */
const tests: Limit = { name: "webhook tests", most: 10, windowMs: 60_000, keys: 10_000 };

/** A person changes the list now and then, a deployment once; each change is a commit and a message on the stream. */
const changes: Limit = { name: "webhook changes", most: 300, windowMs: 60_000, keys: 10_000 };

/** Of a list whose masks are resolved: each but the first is for somebody else's change in that instant. */
const mostReadings = 5;

const tag = "Webhooks";

const noSuchWebhook = () =>
  notFound("The webhook does not exist; GET /v1/tenants/webhooks lists them.", "webhook_not_found");

const tooManyTests = (retryAfterSeconds: number) =>
  rateLimited(
    `An account may send ${tests.most} webhook tests a minute; retry after the number of seconds in Retry-After.`,
    "too_many_tests",
    retryAfterSeconds,
  );

const tooManyChanges = (retryAfterSeconds: number) =>
  rateLimited(
    `An account may change its webhooks ${changes.most} times a minute; retry after the number of seconds in Retry-After.`,
    "too_many_webhook_changes",
    retryAfterSeconds,
  );

const tooManyChangesAnswer = refusal("The account has changed its webhooks too often.", tooManyChanges(60));

export function webhookRoutes({
  store,
  limits,
  clock,
  webhookConcurrency,
  log,
  headerVault,
  policyOf,
  hub,
  tell,
  maxBodyBytes,
  sendTest,
  isPaused,
}: WebhookRouteDeps): ErasedEndpoint[] {
  const settingsFor = (tenant: Tenant) => (webhook: Webhook) =>
    m.toWebhookSettings(webhook, headerVault.open(tenant.id, webhook.sealedHeaders));

  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/webhooks",
        tag,
        summary: "List the registered webhooks",
        access: "session",
        query: m.listQuery,
        responses: {
          200: {
            description: "The webhooks, in the order in which they were set; with `expand=true`, all their settings.",
            schema: m.webhookList,
            example: m.webhookListExample,
            headers: tagHeader,
          },
          400: invalidRequest('expand must be "true" or "false".'),
        },
      },
      async ({ tenant, query: { expand } }) => {
        const webhooks = await store.webhooks(tenant.key);
        return okList(webhooks, expand === "true" ? settingsFor(tenant) : m.toWebhookListEntry);
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/webhooks/health",
        tag,
        summary: "Show how the latest deliveries to each webhook went",
        description: `Covers the latest ${healthLimits.records} records of each webhook, by ingestion time; \`records\` is their number. They are taken from the account's latest ${healthLimits.walked} records, so replays of events from long before a webhook was registered may be missing.`,
        access: "session",
        responses: {
          200: {
            description: "One entry per webhook, in the order of the list.",
            schema: m.webhookHealthList,
            example: m.webhookHealthExample,
          },
        },
      },
      async ({ tenant }) => ok((await store.webhookHealth(tenant.key, healthLimits)).map(m.toWebhookHealth)),
    ),

    endpoint(
      {
        method: "PUT",
        path: "/v1/tenants/webhooks",
        tag,
        summary: "Replace all webhooks",
        description:
          "A URL that is left out is removed, an empty array removes all, and a URL that stays keeps its id. " +
          "A setting that an entry leaves out keeps its value for a URL that stays, and null resets it; only `name` becomes empty. " +
          "If any entry is invalid, nothing changes. With the `ETag` of the list in `If-Match`, a list that somebody else has changed since is left alone (412). The account's inbox (`GET /v1/inbox`) can be registered like any URL. " +
          `At most ${changes.most} changes a minute.`,
        access: "session",
        body: m.webhookEntries,
        bodyExample: m.webhookEntriesExample,
        limit: async ({ tenant }) => refuseTooMany(await limits.peek([{ limit: changes, key: tenant.id }])),
        responses: {
          200: {
            description: "The saved list.",
            schema: m.savedWebhooks,
            example: m.webhookEntriesExample,
            headers: tagHeader,
          },
          400: invalidRequest('[0].webhook_url must start with "https://".', "invalid_webhook_url"),
          412: refusal("The list is not the one that `If-Match` names; nothing has changed.", listChanged()),
          429: tooManyChangesAnswer,
        },
      },
      async ({ tenant, body, address, headers }) => {
        const readAs = tagsIn(headers.get("if-match"));
        const limit = webhooksAllowed(tenant);
        const checked = await checkWebhooks(body, { policy: policyOf(tenant), field: "", limit, webhookConcurrency });
        const resolve = async (): Promise<WantedList> => {
          const stored = hasMasks(checked) ? await store.webhooks(tenant.key) : null;
          const sealing = { headerVault, tenantId: tenant.id, field: "", stored: stored ?? [] } as const;
          return { webhooks: sealHeaders(checked, sealing), limit, readAs: stored ? onlyAs(stored, readAs) : readAs };
        };
        const wanted = await resolve();
        // Checked again, and only counted now: a request that was refused has changed nothing.
        refuseTooMany(await limits.take([{ limit: changes, key: tenant.id }]));
        const act = { ...byAccount(address), action: "webhooks.changed" } as const;
        const replace = (list: WantedList) => store.replaceWebhooks(tenant.key, list, clock.now(), act);
        const saved = await (readAs === null ? replaceAsRead(wanted, replace, resolve) : replace(wanted));
        announceChange(hub, tenant, "webhooks");
        return okList(saved, m.toSavedWebhook);
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/webhooks/:id/enable",
        tag,
        summary: "Enable a disabled webhook",
        description:
          "New events go to the webhook again, and its failures are counted from the beginning. Nothing that has failed is sent again; " +
          "`POST /v1/events/replays/failed` does that. A webhook that is not disabled stays as it is. " +
          `Counts towards the ${changes.most} changes a minute.`,
        access: "session",
        params: m.webhookPath,
        limit: async ({ tenant }) => refuseTooMany(await limits.take([{ limit: changes, key: tenant.id }])),
        responses: {
          200: {
            description: "The webhook, as `GET /v1/tenants/webhooks?expand=true` shows it.",
            schema: m.webhookSettings,
            example: m.webhookSettingsExample,
          },
          404: refusal("The webhook does not exist.", noSuchWebhook()),
          429: tooManyChangesAnswer,
        },
      },
      async ({ tenant, params, address }) => {
        const act = { ...byAccount(address), action: "webhook.enabled" } as const;
        const enabled = await store.enableWebhook(tenant.key, params.id, act);
        if (!enabled) throw noSuchWebhook();
        const { webhook, wasDisabled } = enabled;
        if (wasDisabled) {
          log.write("info", "webhook.enabled", { webhookId: webhook.id, tenantId: tenant.id });
          announceWebhook(hub, tenant.id, webhook);
          const about = { tenantKey: tenant.key, webhookKey: webhook.key };
          await tell({ type: "postrider.webhook.enabled", about, tenantId: tenant.id, fields: {} });
        }
        return ok(settingsFor(tenant)(webhook));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/webhooks/:id/test",
        tag,
        summary: "Send a signed test event to one webhook",
        description: `Without a body, or with an empty object, a sample is sent. Otherwise a payload is required: it has to meet the rules of ingestion and is sent byte for byte. Returns the attempt once it has finished; nothing is stored or retried. At most ${tests.most} a minute.`,
        access: "session",
        params: m.webhookPath,
        body: "bytes",
        bodyDocument: m.testBody,
        bodyExample: m.testBodyExample,
        bodyOptional: true,
        maxBodyBytes,
        async limit({ tenant }) {
          const turn = await limits.take([{ limit: tests, key: tenant.id }]);
          if (turn.ok) return;
          throw tooManyTests(turn.retryAfterSeconds);
        },
        responses: {
          200: {
            description: "The attempt, whether it succeeded or failed.",
            schema: m.testedBody,
            example: m.testedExample,
          },
          400: invalidRequest("payload is required.", "payload_required"),
          402: refusal("The account is suspended for an outstanding charge.", suspendedForCharge()),
          403: refusal("The operator has suspended the account.", suspendedByOperator()),
          404: refusal("The webhook does not exist.", noSuchWebhook()),
          429: refusal("The account has sent too many webhook tests.", tooManyTests(60)),
          503: refusal("The operator has paused deliveries.", deliveriesPaused()),
        },
      },
      async ({ tenant, params, body }) => {
        const event = isNothing(body) ? null : sliceEvent(body);
        const refused = refusalOfWork(tenant);
        if (refused) throw refused;
        const webhook = (await store.webhooks(tenant.key)).find(({ id }) => id === params.id);
        if (!webhook) throw noSuchWebhook();
        if (isPaused()) throw deliveriesPaused();
        const tested = await sendTest(tenant, webhook, event?.payload);
        const attempt = { eventId: tested.eventId, ...toAttemptBody(tested) };
        if (!event) return ok(attempt);
        const { type } = event;
        return ok({ ...attempt, eventType: type, typeIsTaken: takes(webhook.eventTypes, type) });
      },
    ),
  ];
}

const tagHeader = { ETag: "Identifies this list, for `If-Match`." };

const okList = (webhooks: readonly Webhook[], toEntry: (webhook: Webhook) => unknown): Reply => ({
  ...ok(webhooks.map(toEntry)),
  headers: { ETag: etag(listTag(webhooks)) },
});

/** Masks stand for values of the list that was read for them, so nothing but that one may be replaced. */
function onlyAs(stored: readonly Webhook[], readAs: readonly string[] | null): readonly string[] {
  const current = listTag(stored);
  return readAs === null || readAs.includes(current) ? [current] : [];
}

/** For a client that replaces any list: one that has changed since its masks were resolved is read again. */
async function replaceAsRead(
  wanted: WantedList,
  replace: (list: WantedList) => Promise<Webhook[]>,
  resolve: () => Promise<WantedList>,
): Promise<Webhook[]> {
  let list = wanted;
  for (let left = mostReadings - 1; ; left -= 1) {
    try {
      return await replace(list);
    } catch (error) {
      if (!(error instanceof DomainError && error.code === "webhooks_changed") || left === 0) throw error;
      list = await resolve();
    }
  }
}

/** True for an empty object, too: some clients always send JSON. */
const isNothing = (body: Uint8Array): boolean =>
  body.length < 64 && /^\s*(\{\s*\}\s*)?$/.test(Buffer.from(body).toString());

function refuseTooMany(turn: Turn): void {
  if (turn.ok) return;
  throw tooManyChanges(turn.retryAfterSeconds);
}
