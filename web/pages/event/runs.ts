import type { Attempt } from "../../api/types.ts";
import { count } from "../../format/number.ts";
import { attemptsInWords } from "../events/record.ts";

/** Consecutive attempts under the same label: the first delivery, or a replay. */
export interface Run {
  readonly replayGroupId: string | null;
  readonly attempts: readonly Attempt[];
}

/** How many attempts a run had. It may have begun with some that are not listed, as attempts are numbered from 1. */
export function sizeOf({ attempts }: Run, isOldest: boolean): string {
  const isPart = isOldest && attempts[0]?.number !== 1;
  return `${isPart ? "at least " : ""}${attemptsInWords(attempts.length)}`;
}

/** @param forgotten how many of the earliest attempts the log has dropped */
export const forgottenInWords = (forgotten: number): string =>
  `${forgotten === 1 ? "1 earlier attempt is" : `${count(forgotten)} earlier attempts are`} no longer listed`;

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
