import type { Database } from "bun:sqlite";

/** Sees to it that somebody copies the log back where this program does not. */
export interface LogWatch {
  /** To be called between batches. */
  look(): void;
}

/** 256 MiB that nobody has copied. Litestream does so each second or at 4 MiB, and by force at some 500 MB. */
const worrying = 65_536;
const mebibyteInPages = 256;

/** Warns when the log has grown, and again each time that it has doubled since. */
export function createLogWatch(
  client: Database,
  warn: (message: string) => void = () => {},
  first = worrying,
): LogWatch {
  // "noop" copies nothing: it tells how long the log is, and how much of it has been copied.
  const measure = client.prepare<{ log: number; checkpointed: number }, []>("pragma wal_checkpoint(noop)");
  let next = first;

  function uncopied(): number {
    try {
      const { log, checkpointed } = measure.get() ?? { log: 0, checkpointed: 0 };
      return log - checkpointed;
    } catch {
      // A disk that cannot be read is met by those who write.
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
