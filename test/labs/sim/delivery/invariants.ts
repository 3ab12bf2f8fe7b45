/**
 * What must hold in every history, whatever happens in it. Each is checked where it can be seen first: `live-checks.ts` as
 * the program acts, `idle-checks.ts` whenever nothing is under way, `books.ts` along the log of all that was ever
 * committed, `end-checks.ts` when a history is over.
 */
export const invariants = {
  accepted:
    "An event that was answered with 202 is stored once, with the bytes that were sent, and a refused one is not",
  stored: "Nothing is stored that nobody submitted, and a batch is stored whole or not at all",
  repeated: "A request with an idempotency key that is made again gets the ids of the first time",
  complete:
    "From its commit on an event has one record for each webhook that is registered then, or the one of no webhook",
  legal:
    "A record moves only as its states allow: tried again, ended, corrected after a removal, begun anew by a replay",
  final:
    "Every accepted event ends, for each of its webhooks, in exactly one final state, or is erased with its account",
  proven: "A record is DELIVERED after a 2xx in this run, and FAILED for a reason that its attempts or a removal give",
  schedule: "A run makes no more attempts than the schedule has, but for those that a crash has made forget",
  delay: "A retry comes after its pause, varied by a fifth, and not before Retry-After",
  once: "A run that has ended on disk is not attempted again; without a crash nobody gets anything twice in a run",
  removed: "No attempt starts to a webhook after the answer of the PUT that removed it",
  silenced:
    "No attempt starts for an account after its deletion or suspension was answered, and deletion aborts those in flight",
  ordered:
    "To a webhook that is ordered nothing goes while another delivery of its ordering key is under way, nor before an earlier one has ended",
  concurrency: "No webhook has more attempts under way than the limit",
  throttled:
    "No attempt starts to a webhook that its owner has paused, beyond its own rate, or with other headers than its own",
  paced: "No account has more attempts than its rate and its burst allow",
  named: "A webhook is remembered as long as a record or an attempt names it",
  genuine: "What is sent is an accepted event of that account, to that account's webhook, byte for byte",
  log: "The attempts of a record are numbered 1 to n without a gap; each was made, and none is missing that the program survived",
  replays: "A replay queues each record that it selects once, counts how each of its runs ended, and completes once",
  cancelled:
    "No attempt of a replay starts after its cancellation was answered, and what waited for it is again what it was before",
  selection: "A completed replay has begun a run of each selected event for every webhook registered all the while",
  counters: "The counters of an account are what its tables hold",
  charts: "The charts of a history without faults add up to what happened",
  stream: "A stream tells what is on disk, only to the account that owns it, in order, and all of it or `resync`",
  awake:
    "Nothing that could be done waits for somebody to notice: what is due is under way, and what is to clear up is cleared up",
  rest: "After quiet time nothing is due, nothing is held in memory and nothing of a deleted account is left",
  sound: "The program never fails in a way that it does not know",
} as const;

export type Invariant = keyof typeof invariants;

/** Violations of one history, as sentences. */
export interface Findings {
  broken(invariant: Invariant, detail: string): void;
  expect(holds: boolean, invariant: Invariant, detail: () => string): void;
  readonly list: readonly string[];
}

/** The first ones tell what happened; the rest mostly follow from them. */
const mostFindings = 10;

export function createFindings(): Findings {
  const list: string[] = [];
  const broken = (invariant: Invariant, detail: string) => {
    if (list.length < mostFindings) list.push(`${invariants[invariant]}: ${detail}`);
  };
  return {
    list,
    broken,
    expect(holds, invariant, detail) {
      if (!holds) broken(invariant, detail());
    },
  };
}
