import type { Database } from "bun:sqlite";

/** How the runs that a replay began have ended: kept by whoever ends one, in the same transaction. */
export interface ReplayLedger {
  /** A run of this replay ended, or a newer run overtook it. */
  end(replayKey: number, outcome: "delivered" | "failed" | "superseded", now: number): void;
  /** A run that was counted as failed was delivered after all. */
  correct(replayKey: number): void;
  /** Completes the replay if all is queued and every run has ended. */
  completeIfEnded(replayKey: number, now: number): void;
}

export function createReplayLedger(client: Database): ReplayLedger {
  const count = {
    delivered: client.prepare("update replay set delivered = delivered + 1 where key = ?1"),
    failed: client.prepare("update replay set failed = failed + 1 where key = ?1"),
    superseded: client.prepare("update replay set superseded = superseded + 1 where key = ?1"),
  };
  const correct = client.prepare("update replay set failed = failed - 1, delivered = delivered + 1 where key = ?1");
  const complete = client.prepare(
    `update replay set phase = 'completed', completed_at = ?2
     where key = ?1 and phase = 'queued' and delivered + failed + superseded >= queued`,
  );
  return {
    end(replayKey, outcome, now) {
      count[outcome].run(replayKey);
      complete.run(replayKey, now);
    },
    correct: (replayKey) => void correct.run(replayKey),
    completeIfEnded: (replayKey, now) => void complete.run(replayKey, now),
  };
}
