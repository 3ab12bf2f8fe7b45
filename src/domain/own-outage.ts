import type { FailureCode } from "./failure.ts";

/**
 * Whether our own way to the network is down, rather than the receivers (rules, section 14):
 *
 *   someone answers ──a host does not──▶ in doubt ──another host does not either──▶ outage
 *        ▲                                  │                                         │
 *        └──────────── any host answers ◀───┴─────────────────────────────────────────┘
 *
 * A server that delivers to a single host cannot tell its own outage from that host's, and takes it for that host's.
 */
export interface Silence {
  /** Start of the first attempt since the last answer. */
  readonly since: number;
  /** At most two: more would add nothing. */
  readonly hosts: readonly string[];
}

/** No connection, or none that lasted until the answer; a missing route and a dead resolver are among these. */
const silentCodes: ReadonlySet<FailureCode> = new Set<FailureCode>([
  "timeout",
  "dns_failed",
  "connection_refused",
  "host_unreachable",
  "connection_reset",
  "tls_failed",
  "proxy_failed",
]);

/** The operator's proxy stands before every host: what it does not let through says nothing about a webhook. */
export const isOwnFailure = (code: FailureCode | null): boolean => code === "proxy_failed";

export interface AttemptedHost {
  readonly host: string;
  readonly startedAt: number;
  /** Null: it was acknowledged. */
  readonly errorCode: FailureCode | null;
}

/** What is known after an attempt that went out over the network. @param before null: the previous one was answered */
export function silenceAfter(before: Silence | null, { host, startedAt, errorCode }: AttemptedHost): Silence | null {
  // It was refused here because of the host's address: that says nothing about any network.
  if (errorCode === "address_not_public" || errorCode === "interrupted") return before;
  if (errorCode === null || !silentCodes.has(errorCode)) return null;
  if (!before) return { since: startedAt, hosts: [host] };
  if (before.hosts.length > 1 || before.hosts.includes(host)) return before;
  return { ...before, hosts: [...before.hosts, host] };
}

export const isOwnOutage = (silence: Silence | null): boolean => (silence?.hosts.length ?? 0) > 1;
