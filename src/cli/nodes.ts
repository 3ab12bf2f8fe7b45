import { readValues } from "../config.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { exitCode } from "./io.ts";
import { createOperatorClient } from "./operator-client.ts";
import { createStyle } from "./style.ts";
import { formatTable, plainText } from "./table.ts";

interface ListedNode {
  readonly slot: number;
  readonly name: string;
  readonly listeners: readonly string[];
  readonly since: string;
  readonly last_heartbeat_seconds: number;
  readonly alive: boolean;
  readonly jobs: readonly string[];
  readonly answering: boolean;
}

/** `postrider nodes`: the servers that share the database, as this data directory's server sees them. */
export const nodesCommand: Command = {
  words: ["nodes"],
  operands: [],
  flags: [jsonFlag, dataDirFlag],
  summary: "List the servers that share the database",
  details: `The one with a * runs on this data directory, and is the one that was asked. A server
that died stays in the list for 20 seconds, until the others take over what it had.`,
  async run({ flags }, io) {
    const { dataDir } = readValues(io.env, flags);
    const answer = (await createOperatorClient(dataDir).send("GET", "/operator/nodes")) as { nodes: ListedNode[] };
    if (flags.has("--json")) io.out(JSON.stringify(answer));
    else
      io.out(
        formatTable(["slot", "name", "listener", "since", "heartbeat", "jobs"], answer.nodes.map(row), createStyle(io)),
      );
    return exitCode.ok;
  },
};

function row({ slot, name, listeners, since, last_heartbeat_seconds, alive, jobs, answering }: ListedNode): string[] {
  const [first = "–", ...others] = listeners;
  return [
    `${slot}${answering ? " *" : ""}`,
    plainText(name),
    plainText(others.length === 0 ? first : `${first} and ${others.length} more`),
    since,
    alive ? `${last_heartbeat_seconds} s ago` : `dead, ${last_heartbeat_seconds} s ago`,
    jobs.length === 0 ? "–" : jobs.map(plainText).join(", "),
  ];
}
