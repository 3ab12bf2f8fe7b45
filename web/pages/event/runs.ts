import type { Attempt } from "../../api/types.ts";

/** Consecutive attempts under the same label: the first delivery, or a replay. */
export interface Run {
  readonly replayGroupId: string | null;
  readonly attempts: readonly Attempt[];
}

/** The attempts for one webhook, oldest first, grouped by what requested them. */
export function runsOf(attempts: readonly Attempt[]): Run[] {
  const runs: { replayGroupId: string | null; attempts: Attempt[] }[] = [];
  for (const attempt of attempts) {
    const latest = runs.at(-1);
    if (latest && latest.replayGroupId === attempt.replayGroupId) latest.attempts.push(attempt);
    else runs.push({ replayGroupId: attempt.replayGroupId, attempts: [attempt] });
  }
  return runs;
}
