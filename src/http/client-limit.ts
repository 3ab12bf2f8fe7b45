import { rateLimited } from "../domain/errors.ts";
import { clientKey } from "../lib/cidr.ts";
import type { Clock } from "../lib/clock.ts";
import { createLimiter } from "../lib/limiter.ts";
import { failure } from "./error-models.ts";

/** Clients remembered at a time, for each limit. */
const mostClients = 10_000;

/**
 * The `limit` of a route that needs no credentials: what one client address may ask in a minute, so that it is no way to guess
 * ids or tokens. Each server counts for itself: several let through that many times as much, which is still no way.
 */
export function createClientLimit(clock: Clock, perMinute: number): (caller: { address: string }) => Promise<void> {
  const requests = createLimiter({ clock, limit: perMinute, windowMs: 60_000, maxKeys: mostClients });
  return async ({ address }) => {
    const turn = requests.take(clientKey(address));
    if (!turn.ok) throw tooManyRequests(turn.retryAfterSeconds);
  };
}

const message = "Too many requests from this address; retry after the number of seconds in Retry-After.";

const tooManyRequests = (retryAfterSeconds: number) => rateLimited(message, "too_many_requests", retryAfterSeconds);

/** How the document describes it. */
export const tooManyRequestsAnswer = failure("Too many requests from this address.", "too_many_requests", message);
