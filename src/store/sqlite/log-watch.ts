import type { Database } from "bun:sqlite";

/** Checks that the log is copied back by another program where this one does not do it. */
export interface LogWatch {
  /** To be called between batches. */
  look(): void;
}

/** 256 MiB not copied back. Litestream copies each second or at 4 MiB, and by force at about 500 MB. */
const worrying = 65_536;
const mebibyteInPages = 256;

/** Warns when the log has grown, and again each time it has doubled since. */
export function createLogWatch(
  client: Database,
  warn: (message: string) => void = () => {},
  first = worrying,
): LogWatch {
  // "noop" copies nothing: it reports how long the log is, and how much of it has been copied.
  const measure = client.prepare<{ log: number; checkpointed: number }, []>("pragma wal_checkpoint(noop)");
  let next = first;

  function uncopied(): number {
    try {
      const { log, checkpointed } = measure.get() ?? { log: 0, checkpointed: 0 };
      return log - checkpointed;
    } catch {
      // If the disk cannot be read, writers will run into that.
      return 0;
    }
  }

  return {
    look() {
      const left = uncopied();
      if (left < first / 2) next = first;
      if (left < next) return;
      next = left * 2;
      warn(
        `The log of the database has grown by ${Math.round(left / mebibyteInPages)} MiB that nobody has copied back, and goes on ` +
          "growing: POSTRIDER_CHECKPOINTS=external leaves that to Litestream. Try: see that litestream replicate runs on " +
          `${client.filename} and what it logs; without it, start the server without POSTRIDER_CHECKPOINTS.`,
      );
    },
  };
}
