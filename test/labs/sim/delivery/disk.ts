import type { Random } from "../../../../src/lib/random.ts";

/** What a disk can do to a commit. `doubtful`: it fails and leaves open whether it will be found. */
type Trouble = "none" | "full" | "doubtful" | "below_floor";

/** The storage under the program: it can be full, nearly full, or fail so that nobody knows what was written. */
export function createDisk(random: Random) {
  let trouble: Trouble = "none";
  /** A commit is in doubt: the writer stands until another one has gone through. */
  let isInDoubt = false;
  /** Every commit of the trouble that is under way has its own luck. */
  let share = 1;
  const seen = { refusals: 0 };

  const fail = (code: string): never => {
    seen.refusals += 1;
    throw Object.assign(new Error(`Simulated: ${code}`), { code });
  };

  return {
    seen,
    get isTroubled() {
      return trouble !== "none" || isInDoubt;
    },
    get isInDoubt() {
      return isInDoubt;
    },
    hasRoom: () => trouble !== "below_floor" && trouble !== "full",
    break(next: Exclude<Trouble, "none">) {
      trouble = next;
      share = random.pick([0.3, 0.7, 1]);
    },
    mend() {
      trouble = "none";
    },
    /** Runs instead of the commit statement. */
    commit(commit: () => void): void {
      const fails = random.chance(share);
      if (trouble === "full" && fails) fail("SQLITE_FULL");
      if (trouble === "doubtful" && fails) {
        if (random.chance(0.5)) commit();
        isInDoubt = true;
        fail("SQLITE_IOERR_FSYNC");
      }
      commit();
      isInDoubt = false;
    },
    /** The program has crashed: what it had not committed is lost, and a commit in doubt stays as it is found. */
    commitAfterCrash(commit: () => void): void {
      if (!isInDoubt) throw new Error("The program has crashed");
      commit();
      isInDoubt = false;
    },
  };
}

export type Disk = ReturnType<typeof createDisk>;
