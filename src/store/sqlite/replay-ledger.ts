import type { Database } from "bun:sqlite";
import { isCompleted } from "../../domain/replay-phase.ts";

/** How the runs that a replay began have ended: updated by whatever code ends one, in the same transaction. */
export interface ReplayLedger {
  /** A run of this replay ended, or was superseded by a newer run. */
  end(replayKey: number, outcome: "delivered" | "failed" | "superseded", now: number): void;
  /** A run that was counted as failed was delivered after all. */
  correct(replayKey: number): void;
  /** Completes the replay if everything is queued and every run has ended. */
  completeIfEnded(replayKey: number, now: number): void;
}

const progress = "phase, queued, delivered, failed, superseded";

type Progress = Parameters<typeof isCompleted>[0];

export function createReplayLedger(client: Database): ReplayLedger {
  const count = (column: "delivered" | "failed" | "superseded") =>
    client.prepare<Progress, [number]>(
      `update replay set ${column} = ${column} + 1 where key = ?1 returning ${progress}`,
    );
  const counts = { delivered: count("delivered"), failed: count("failed"), superseded: count("superseded") };
  const progressOf = client.prepare<Progress, [number]>(`select ${progress} from replay where key = ?1`);
  const correct = client.prepare("update replay set failed = failed - 1, delivered = delivered + 1 where key = ?1");
  const complete = client.prepare("update replay set phase = 'completed', completed_at = ?2 where key = ?1");

  function completeIf(found: Progress | null, replayKey: number, now: number): void {
    if (found && isCompleted(found)) complete.run(replayKey, now);
  }

  return {
    end: (replayKey, outcome, now) => completeIf(counts[outcome].get(replayKey), replayKey, now),
    correct: (replayKey) => void correct.run(replayKey),
    completeIfEnded: (replayKey, now) => completeIf(progressOf.get(replayKey), replayKey, now),
  };
}
