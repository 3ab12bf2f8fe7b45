import { byAccount } from "../domain/audit.ts";
import { rateLimited } from "../domain/errors.ts";
import type { Replay } from "../domain/replay.ts";
import type { Tenant } from "../domain/tenant.ts";
import { accepted, type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { invalidRequest, refusal } from "../http/error-models.ts";
import { listReply } from "../http/list-reply.ts";
import { createKeyedLock } from "../lib/keyed-lock.ts";
import type { Limit, Limits } from "../store/limits.ts";
import type { Store } from "../store/store.ts";
import * as m from "./model.ts";
import { createReplays, type ReplayDeps, type Selection } from "./replay.ts";

export interface ReplayRouteDeps extends ReplayDeps {
  store: ReplayDeps["store"] & Pick<Store, "replays" | "findReplay">;
  limits: Pick<Limits, "take">;
}

/** Rules, section 3. */
const singles: Limit = { name: "single replays", most: 600, windowMs: 60_000, keys: 10_000 };

/** A label is kept with its replay, however long it is: 600 labels of 60 KB a minute would be 50 GB a day. */
const labelBytesOfOne = 1024;

const tooManySingles = (retryAfterSeconds: number) =>
  rateLimited(
    `An account may replay ${singles.most} single events a minute; use a bulk replay, or retry after the number of seconds in Retry-After.`,
    "too_many_single_replays",
    retryAfterSeconds,
  );

const tag = "Replays";

const narrowing =
  "`webhook`, `type`, `code`, `status`, `from` and `to` narrow the selection: an event is selected if one of its records matches all of them. With `code` or `status`, it goes only to the webhooks of the matching records. One that was removed is `skipped`, unless its URL was registered again or `webhook` names another.";

export function replayRoutes(deps: ReplayRouteDeps): ErasedEndpoint[] {
  const { store, limits } = deps;
  const replays = createReplays(deps);
  const labels = createKeyedLock<string>();

  async function takeSingle({ id }: Tenant): Promise<void> {
    const turn = await limits.take([{ limit: singles, key: id }]);
    if (turn.ok) return;
    throw tooManySingles(turn.retryAfterSeconds);
  }

  /**
   * Takes an account's labels one after the other: of many concurrent ones, as many are taken whole as there is room for,
   * instead of a part of each.
   */
  const takeLabel = (tenant: Tenant, label: string) =>
    labels.run(tenant.id, async () => {
      for (let more = Math.floor(Buffer.byteLength(label) / labelBytesOfOne); more > 0; more -= 1) {
        await takeSingle(tenant);
      }
    });

  return [
    endpoint(
      {
        method: "POST",
        path: "/v1/events/replays/single",
        tag,
        summary: "Replay one event",
        description: `Delivers it to every currently registered webhook, or to \`webhook\` alone. At most ${singles.most} a minute; each full KiB of the label counts as one more. ${narrowing}`,
        access: "session",
        query: m.startQuery,
        body: m.singleBody,
        bodyExample: { eventId: "evt_01jc8x2m4e7n9q3s5v7y9a1c3e", replayGroupId: "after-the-outage" },
        limit: ({ tenant }) => takeSingle(tenant),
        responses: {
          ...m.singleResponses,
          429: refusal("The account has replayed too many single events.", tooManySingles(60)),
        },
      },
      async ({ tenant, body, address }) => {
        await takeLabel(tenant, body.replayGroupId);
        const replay = await replays.replayEvent(
          tenant,
          { eventId: body.eventId, label: body.replayGroupId, filter: m.filterOfBody(body) },
          byAccount(address),
        );
        return accepted({ status: "initiated" }, locationOf(replay));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/events/replays/timeline",
        tag,
        summary: "Replay the events of a time range",
        description: `Events are selected by their ingestion time; both bounds are inclusive. ${narrowing}`,
        access: "session",
        query: m.startQuery,
        body: m.timelineBody,
        bodyExample: {
          replayGroupId: "after-the-outage",
          startTime: "2026-03-01T12:00:00Z",
          endTime: "2026-03-01T13:30:00Z",
        },
        responses: { ...m.bulkResponses, 400: invalidRequest("startTime must not be after endTime.") },
      },
      async ({ tenant, body, address }) => {
        const { replayGroupId, startTime, endTime } = body;
        const selection = { kind: "timeline", from: startTime, to: endTime, filter: m.filterOfBody(body) } as const;
        return accepted(
          undefined,
          locationOf(await replays.startBulk(tenant, selection, replayGroupId, byAccount(address))),
        );
      },
    ),

    ...(["all", "failed"] as const).map((kind) =>
      endpoint(
        {
          method: "POST",
          path: `/v1/events/replays/${kind}`,
          tag,
          summary: kind === "all" ? "Replay all stored events" : "Replay all failed events",
          description: `${
            kind === "all"
              ? "Covers the whole history of the account, which can take a long time."
              : "Covers every event that is currently FAILED, for the webhooks that have not acknowledged it."
          } ${narrowing}`,
          access: "session",
          query: m.startQuery,
          body: m.bulkBody,
          bodyExample:
            kind === "all"
              ? { replayGroupId: "after-the-outage" }
              : {
                  replayGroupId: "after-the-outage",
                  webhook: "https://example.com/hooks",
                  code: "http_status",
                  status: 503,
                },
          responses: m.bulkResponses,
        },
        async ({ tenant, body, address }) => {
          const selection = { kind, filter: m.filterOfBody(body) };
          const replay = await replays.startBulk(tenant, selection, body.replayGroupId, byAccount(address));
          return accepted(undefined, locationOf(replay));
        },
      ),
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/events/replays/preview",
        tag,
        summary: "Count the events that a replay would select",
        description: "Takes the body of the replay, including its filters, and its kind. Nothing is delivered.",
        access: "session",
        query: m.startQuery,
        body: m.previewBody,
        bodyExample: { kind: "failed", replayGroupId: "after-the-outage" },
        responses: {
          200: {
            description: "Number of events that the replay would select.",
            schema: m.previewedBody,
            example: { selected: 400, payloadsErased: 88 },
          },
          400: invalidRequest('kind must be "single", "timeline", "all" or "failed".'),
          404: m.webhookNotFound,
        },
      },
      async ({ tenant, body }) => ok(m.toPreviewedBody(await replays.preview(tenant, selectionOf(body)))),
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/events/replays",
        tag,
        summary: "List the replays, newest first",
        access: "session",
        query: m.listQuery,
        responses: {
          200: {
            description: "One page of replays.",
            schema: m.replayListBody,
            example: { replays: [m.replayExample], total: 1 },
          },
          400: invalidRequest("size must be at most 1000."),
        },
      },
      async ({ tenant, query: { page, size } }) => {
        const found = await store.replays(tenant.key, { offset: page * size, limit: size });
        return listReply({
          before: '{"replays":[',
          entries: found.replays,
          write: m.replayPieces,
          after: `],"total":${found.total}}`,
        });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/events/replays/:id",
        tag,
        summary: "Get the progress of a replay",
        access: "session",
        params: m.replayPath,
        responses: {
          200: { description: "The replay.", schema: m.replayBody, example: m.replayExample },
          404: m.replayNotFound,
        },
      },
      async ({ tenant, params }) => {
        const replay = await store.findReplay(tenant.key, params.id);
        if (!replay) throw m.noSuchReplay();
        return ok(m.toReplayBody(replay));
      },
    ),

    endpoint(
      {
        method: "DELETE",
        path: "/v1/events/replays/:id",
        tag,
        summary: "Cancel what a replay has not sent yet",
        description:
          "Once this request is answered, no attempt of the replay starts. What is not queued yet is left out, and waiting records return to their earlier state; `returned` counts them. An attempt in flight counts as usual. The next replay may then start. A completed replay stays as it is.",
        access: "session",
        params: m.replayPath,
        responses: {
          200: {
            description: "The replay after the cancellation.",
            schema: m.replayBody,
            example: { ...m.replayExample, status: "cancelled", completedAt: "2026-03-01T12:35:10.120Z" },
          },
          404: m.replayNotFound,
        },
      },
      async ({ tenant, params, address }) =>
        ok(m.toReplayBody(await replays.cancel(tenant, params.id, byAccount(address)))),
    ),
  ];
}

const locationOf = ({ id }: Replay) => ({ Location: `/v1/events/replays/${id}` });

/** The selection that the replay itself would make. */
function selectionOf({ kind, eventId = "", startTime, endTime, ...rest }: m.PreviewFields): Selection {
  const filter = m.filterOfBody(rest);
  if (kind === "single") return { kind, eventId, filter };
  const isTimeline = kind === "timeline" && startTime !== undefined && endTime !== undefined;
  return { kind, filter, ...(isTimeline && { from: startTime, to: endTime }) };
}
