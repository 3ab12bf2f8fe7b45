import { SQL } from "bun";

/**
 * One connection that hears notifications. The client makes it anew by itself when it is lost, and what was sent meanwhile
 * is not heard: nothing may rest on it, `onListening` says when to look at what may have been missed.
 */
export interface Listener {
  listen(channel: string, onNotify: (payload: string) => void, onListening: () => void): Promise<void>;
  close(): Promise<void>;
}

export function createListener(url: string): Listener {
  const sql = new SQL(url, { adapter: "postgres", max: 1, connection: { application_name: "postrider listener" } });
  return {
    async listen(channel, onNotify, onListening) {
      await sql.listen(channel, onNotify, onListening);
    },
    close: () => sql.close({ timeout: 0 }),
  };
}
