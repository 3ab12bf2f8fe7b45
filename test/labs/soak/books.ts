/** What the load of a soak did, and what went wrong: every answer that is not the expected one is a fault. */
export interface Books {
  readonly counts: Map<string, number>;
  readonly faults: string[];
  /** Counts one of a kind; a failure is noted, not thrown. */
  run(kind: string, action: () => Promise<void>): Promise<void>;
}

const keptFaults = 20;

export function createBooks(): Books {
  const counts = new Map<string, number>();
  const faults: string[] = [];
  return {
    counts,
    faults,
    async run(kind, action) {
      try {
        await action();
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
      } catch (error) {
        counts.set("faults", (counts.get("faults") ?? 0) + 1);
        if (faults.length < keptFaults) faults.push(`${kind}: ${error instanceof Error ? error.message : error}`);
      }
    },
  };
}

/** Runs an action again and again, with a pause between, until `isOver`. */
export async function repeat(isOver: () => boolean, pauseMs: () => number, action: () => Promise<void>): Promise<void> {
  while (!isOver()) {
    await action();
    await Bun.sleep(pauseMs());
  }
}

export const between = (low: number, high: number) => low + Math.random() * (high - low);
