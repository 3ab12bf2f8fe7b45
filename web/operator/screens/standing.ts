/** What `GET /operator/nodes` returns. */
export interface Listed {
  /** False: one server, on a database that no other can use. */
  readonly shared: boolean;
  readonly nodes: readonly Server[];
}

export interface Server {
  readonly slot: number;
  readonly name: string;
  readonly listeners: readonly string[];
  readonly since: string;
  readonly last_heartbeat_seconds: number;
  readonly lease_left_seconds: number | null;
  readonly schema: number | null;
  readonly alive: boolean;
  readonly jobs: readonly string[];
  readonly answering: boolean;
}

/** After this long it starts no deliveries, because its lease might run out before they end. */
const silentSeconds = 9;

type Liveness = "alive" | "silent" | "dead";

function livenessOf({ alive, last_heartbeat_seconds }: Server): Liveness {
  if (!alive) return "dead";
  return last_heartbeat_seconds < silentSeconds ? "alive" : "silent";
}

export interface ServerStanding {
  /** One of the three meanings that have a colour. */
  readonly tone: "delivered" | "waiting" | "failed";
  readonly icon: "check" | "wait" | "cross";
  readonly words: string;
}

export function standingOf(server: Server): ServerStanding {
  const silence = `no heartbeat for ${Math.round(server.last_heartbeat_seconds)} s`;
  switch (livenessOf(server)) {
    case "alive":
      return { tone: "delivered", icon: "check", words: "Alive" };
    case "silent":
      return { tone: "waiting", icon: "wait", words: `Silent, ${silence}` };
    case "dead":
      return { tone: "failed", icon: "cross", words: "Lease ran out" };
  }
}

/** The sentence above the list: it says what is wrong, if anything is. */
export function summaryOf(nodes: readonly Server[], shared: boolean): { tone: "calm" | "warn" | "bad"; text: string } {
  if (!shared) return { tone: "calm", text: "This server is alone: everything is in its own data directory." };
  const named = (which: Liveness) => nodes.filter((node) => livenessOf(node) === which).map(({ name }) => name);
  const [dead, silent] = [named("dead"), named("silent")];
  if (dead.length > 0) {
    const who = `${inWords(dead)} ${dead.length === 1 ? "has" : "have"}`;
    const text = `${who} not been heard of for 20 s. The others take over within seconds.`;
    return { tone: "bad", text };
  }
  if (silent.length > 0) {
    const [does, starts] = silent.length === 1 ? ["does", "starts"] : ["do", "start"];
    return { tone: "warn", text: `${inWords(silent)} ${does} not reach the database, and ${starts} no deliveries.` };
  }
  if (nodes.length === 1) {
    const text = "One server serves this database. A second one would take over when it dies: start it with the same ";
    return { tone: "calm", text: `${text}POSTRIDER_DATABASE_URL and master key.` };
  }
  return { tone: "calm", text: `${nodes.length} servers share this database, and all are alive.` };
}

const inWords = (names: readonly string[]) => names.join(", ").replace(/, ([^,]*)$/, " and $1");

const works: Readonly<Record<string, string>> = { biller: "payments", janitor: "clean-up", replayer: "replays" };

/** What runs on only one server at a time. A job that this page does not know yet is shown as is. */
export const workOf = ({ jobs }: Server): string => jobs.map((job) => works[job] ?? job).join(", ") || "–";
