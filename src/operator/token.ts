import type { DataDir } from "../data-dir.ts";
import { unavailable } from "../domain/errors.ts";
import type { Log } from "../lib/log.ts";

/** What the operator authenticates with; another one from the moment in which it is rotated. */
export interface OperatorToken {
  current(): string;
  /** @throws unavailable `storage_unavailable` when it cannot be written; then the old one holds */
  rotate(): string;
}

export function createOperatorToken(
  dataDir: Pick<DataDir, "secrets" | "rotateOperatorToken">,
  log: Log,
): OperatorToken {
  let { operatorToken } = dataDir.secrets;
  return {
    current: () => operatorToken,
    rotate() {
      try {
        operatorToken = dataDir.rotateOperatorToken();
      } catch (error) {
        log.write("error", "operator.token_not_written", { error: String(error) });
        throw unavailable(
          "The new token cannot be written to the data directory; the old one stays valid.",
          "storage_unavailable",
          30,
        );
      }
      return operatorToken;
    },
  };
}
