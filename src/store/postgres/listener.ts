import { SQL } from "bun";
import { faultOf, storageUnavailable } from "./faults.ts";
import { type PatienceOptions, untilAnswered } from "./until-answered.ts";

/**
 * One connection that receives notifications. When it is lost, the client reconnects by itself, and notifications sent
 * meanwhile are missed: nothing may depend on them, and `onListening` says when to look for what may have been missed.
 */
export interface Listener {
  /** @throws StartupError when the database does not answer for long; a connection lost later is re-established */
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
