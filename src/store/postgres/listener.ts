import { SQL } from "bun";
import { faultOf, storageUnavailable } from "./faults.ts";
import { type PatienceOptions, untilAnswered } from "./until-answered.ts";

/**
 * One connection that receives notifications. When it is lost, another one is opened, and notifications sent meanwhile are
 * missed: nothing may depend on them, and `onListening` says when to look for what may have been missed.
 */
export interface Listener {
  /** @throws StartupError when the database does not answer for long; a connection lost later is re-established */
  listen(channel: string, onNotify: (payload: string) => void, onListening: () => void): Promise<void>;
  close(): Promise<void>;
}

/** Pause between a lost connection, or an attempt to replace it, and the next attempt. */
const reconnectMs = 1000;

/**
 * The client would reconnect by itself, but writes each failure to the console, where the log is. So a client is closed as
 * soon as its connection is lost, and we open the next one.
 */
export function createListener(patience: PatienceOptions): Listener {
  const { url, clock, onFailure } = patience;
  type Subscription = Parameters<Listener["listen"]>;
  const subscriptions: Subscription[] = [];
  let current = open();
  let cancelReconnect = () => {};
  let closed = false;

  function open(): SQL {
    const sql: SQL = new SQL(url, {
      adapter: "postgres",
      max: 1,
      connection: { application_name: "postrider listener" },
      onclose: () => reconnectLater(sql),
    });
    return sql;
  }

  /** Once for each client, however many of its calls fail. */
  function reconnectLater(lost: SQL): void {
    if (lost !== current || closed) return;
    lost.close({ timeout: 0 }).catch(() => {});
    const next = open();
    current = next;
    // Whoever is about to listen for the first time tries again, and finds the next client.
    const held = [...subscriptions];
    cancelReconnect = clock.after(reconnectMs, () => void resubscribe(next, held));
  }

  async function resubscribe(sql: SQL, held: readonly Subscription[]): Promise<void> {
    try {
      for (const subscription of held) await sql.listen(...subscription);
    } catch (error) {
      if (sql === current && !closed) onFailure(error);
      reconnectLater(sql);
    }
  }

  return {
    async listen(...subscription) {
      await untilAnswered(patience, async () => {
        try {
          await current.listen(...subscription);
        } catch (error) {
          const fault = faultOf(error);
          onFailure(error);
          throw fault === "defect" ? error : storageUnavailable(fault, error);
        }
      });
      subscriptions.push(subscription);
    },
    close() {
      closed = true;
      cancelReconnect();
      return current.close({ timeout: 0 });
    },
  };
}
