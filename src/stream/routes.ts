import { DomainError } from "../domain/errors.ts";
import { type ErasedEndpoint, endpoint } from "../http/endpoint.ts";
import { refusal } from "../http/error-models.ts";
import type { Sessions } from "../http/session.ts";
import { type Hub, maxStreamsPerTenant, tooManyStreams } from "./hub.ts";

export interface StreamRouteDeps {
  hub: Pick<Hub, "subscribe">;
  sessions: Pick<Sessions, "check">;
}

const example = [
  ": open",
  "id: 1772368496789-41",
  "",
  "event: event.accepted",
  "id: 1772368496789-42",
  'data: {"eventId":"evt_01jc8x2m4e7n9q3s5v7y9a1c3e","ingestionTimestamp":"2026-03-01T12:34:56.789Z"}',
  "",
  "",
].join("\n");

/** A stream is never quiet for longer than its heartbeat (15 s); without any limit a stalled reader would stay forever. */
const idleTimeoutSeconds = 60;

/** The dashboard's stream (rules, section 11). */
export function streamRoutes({ hub, sessions }: StreamRouteDeps): ErasedEndpoint[] {
  /** Checks for a stream what is checked for a request: the token itself, its session, its account. */
  async function isAccepted(token: string): Promise<boolean> {
    try {
      await sessions.check(token);
      return true;
    } catch (error) {
      if (error instanceof DomainError && error.kind === "unauthenticated") return false;
      throw error;
    }
  }

  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/stream",
        tag: "Stream",
        summary: "Follow the account's activity in real time (server-sent events)",
        description:
          "Messages are `event.accepted`, `delivery.attempted`, `delivery.finished`, `replay.progressed`, " +
          "`webhook.changed` and `account.changed`; each has an `id` and one line of JSON without payloads. `Last-Event-ID` resumes after the " +
          "message it names. If that is too old, or the reader was too slow, a `resync` message says that some messages are " +
          "missing: fetch the lists again. `delivery.finished` follows the last attempt of a delivery; what fails without one, because its " +
          "webhook is missing, removed or disabled, is only in the lists. Failures have their `errorCode`, as in attempts and records. `replay.progressed` " +
          "names the events that were just queued, if any, in `eventIds`. `webhook.changed` shows a webhook that began to fail, recovered, " +
          "was disabled or was enabled. The stream opens with an `id` alone, so that you " +
          "can resume from before the first message. A comment is sent every 15 seconds. The stream ends with the session.",
        access: "session",
        idleTimeoutSeconds,
        responses: {
          200: {
            description: "The stream.",
            contentType: "text/event-stream",
            example,
            headers: { "X-Accel-Buffering": "no: proxies pass on each message at once." },
          },
          429: refusal(`The account has ${maxStreamsPerTenant} open streams.`, tooManyStreams()),
        },
      },
      ({ tenant, session, headers }) => {
        const lastEventId = headers.get("last-event-id");
        const token = (headers.get("authorization") ?? "").slice("Bearer ".length).trim();
        return {
          status: 200,
          text: hub.subscribe(tenant.id, {
            ...(lastEventId !== null && lastEventId !== "" && { lastEventId }),
            sessionId: session.jti,
            endsAt: session.exp * 1000,
            stillValid: () => isAccepted(token),
          }),
          headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no" },
        };
      },
    ),
  ];
}
