import type { FailureCode } from "./failure.ts";

/**
 * Whether our own way to the network is down, rather than the receivers (rules, section 14):
 *
 *   someone answers ──a host does not──▶ in doubt ──two hosts do not, for a minute──▶ outage
 *        ▲                                  │                                         │
 *        └──────────── any host answers ◀───┴─────────────────────────────────────────┘
 *
 * Only hosts whose silence is news count: one that was silent while another answered is down by itself, until it answers.
 * Otherwise two dead hosts would be an outage whenever nothing else is being sent.
 *
 * A server that delivers to a single host cannot tell its own outage from that host's, and takes it for that host's.
 */
export interface Silence {
  readonly host: string;
  /** Start of the first attempt since the last answer. */
  readonly since: number;
  /** Start of the first attempt that another host did not answer either. */
  readonly sharedSince: number | null;
  /** Start of the latest attempt without an answer. What comes after it is unknown. */
  readonly until: number;
}

/** Several hosts also fail at once for a moment: they share a data centre, a resolver, a certificate's last day. */
export const leastOutageMs = 60_000;

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

/** What an attempt says about the network. @param errorCode null: it was acknowledged */
export function hearingOf(errorCode: FailureCode | null): "answer" | "silence" | "nothing" {
  // It was refused here because of the host's address, or broken off here.
  if (errorCode === "address_not_public" || errorCode === "interrupted") return "nothing";
  return errorCode !== null && silentCodes.has(errorCode) ? "silence" : "answer";
}

export interface AttemptedHost {
  readonly host: string;
  readonly startedAt: number;
  /** Null: it was acknowledged. */
  readonly errorCode: FailureCode | null;
  /** It was silent before, while another host answered, and has not answered since. */
  readonly isDownByItself: boolean;
}

/** What is known after an attempt that went out over the network. @param before null: the previous one was answered */
export function silenceAfter(before: Silence | null, attempted: AttemptedHost): Silence | null {
  const { host, startedAt, errorCode, isDownByItself } = attempted;
  const heard = hearingOf(errorCode);
  if (heard === "answer") return null;
  if (heard === "nothing" || isDownByItself) return before;
  if (!before) return { host, since: startedAt, sharedSince: null, until: startedAt };
  const sharedSince = before.sharedSince ?? (before.host === host ? null : startedAt);
  return { ...before, sharedSince, until: Math.max(before.until, startedAt) };
}

/** Whether the silence has lasted, and been shared, for so long that it is ours. */
export const isOwnOutage = (silence: Silence | null): boolean =>
  silence !== null && silence.sharedSince !== null && silence.until - silence.sharedSince >= leastOutageMs;
