import { unavailable } from "../domain/errors.ts";
import type { Home } from "../home.ts";
import type { Log } from "../lib/log.ts";

/** What the operator authenticates with; a different value from the moment it is rotated. */
export interface OperatorToken {
  current(): string;
  /** @throws unavailable `storage_unavailable` when it cannot be written; then the old one stays valid */
  rotate(): string;
}

export interface OperatorTokenDeps {
  /** The one the server started with. */
  initial: string;
  home: Pick<Home, "rotateOperatorToken">;
  log: Log;
}

export function createOperatorToken({ initial, home, log }: OperatorTokenDeps): OperatorToken {
  let token = initial;
  return {
    current: () => token,
    rotate() {
      try {
        token = home.rotateOperatorToken();
      } catch (error) {
        log.write("error", "operator.token_not_written", { error: String(error) });
        throw unavailable(
          "The new token cannot be written to the data directory; the old one stays valid.",
          "storage_unavailable",
          30,
        );
      }
      return token;
    },
  };
}
