import { SQL } from "bun";
import { faultOf, storageUnavailable } from "./faults.ts";
import { type PatienceOptions, untilAnswered } from "./until-answered.ts";

/**
 * One connection that hears notifications. The client makes it anew by itself when it is lost, and what was sent meanwhile
 * is not heard: nothing may rest on it, `onListening` says when to look at what may have been missed.
 */
export interface Listener {
  /** @throws StartupError when the database does not answer for long; what is lost after it was made is made anew */
  listen(channel: string, onNotify: (payload: string) => void, onListening: () => void): Promise<void>;
  close(): Promise<void>;
}

export function createListener(url: string, patience: PatienceOptions): Listener {
  const sql = new SQL(url, { adapter: "postgres", max: 1, connection: { application_name: "postrider listener" } });
  return {
    async listen(channel, onNotify, onListening) {
      await untilAnswered(patience, async () => {
        try {
          await sql.listen(channel, onNotify, onListening);
        } catch (error) {
          const fault = faultOf(error);
          throw fault === "defect" ? error : storageUnavailable(fault);
        }
      });
    },
    close: () => sql.close({ timeout: 0 }),
  };
}
