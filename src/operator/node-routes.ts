import * as v from "valibot";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { NodeLease, NodeStanding } from "../store/node-lease.ts";

export interface NodeRouteDeps {
  lease: Pick<NodeLease, "nodes">;
  /** Whether other servers can serve the same database. */
  isShared: boolean;
  /** This server, for when it is the only one there can be. */
  self: { readonly name: string; readonly since: number; listener(): string };
}

const record = v.object({
  slot: v.number(),
  name: v.string(),
  listeners: v.array(v.string()),
  since: v.string(),
  last_heartbeat_seconds: v.number(),
  lease_left_seconds: v.nullable(v.number()),
  schema: v.nullable(v.number()),
  alive: v.boolean(),
  jobs: v.array(v.string()),
  answering: v.boolean(),
});

const example = {
  slot: 0,
  name: "relay-1",
  listeners: ["10.0.0.1:8080", "relay.example.com:443"],
  since: "2026-03-01T12:34:56.789Z",
  last_heartbeat_seconds: 1.2,
  lease_left_seconds: 18.8,
  schema: 1,
  alive: true,
  jobs: ["biller", "janitor"],
  answering: true,
};

const seconds = (ms: number) => Math.round(ms / 100) / 10;

const toRecord = (node: NodeStanding) => ({
  slot: node.slot,
  name: node.name,
  listeners: node.listener === "" ? [] : node.listener.split(","),
  since: formatIso(Math.floor(node.since)),
  last_heartbeat_seconds: seconds(node.lastBeatMsAgo),
  lease_left_seconds: node.leaseLeftMs === null ? null : seconds(node.leaseLeftMs),
  schema: node.schema,
  alive: node.isAlive,
  jobs: [...node.jobs],
  answering: node.isSelf,
});

/** `GET /operator/nodes`, which the command `postrider nodes` calls. */
export function nodeRoutes({ lease, isShared, self }: NodeRouteDeps): ErasedEndpoint[] {
  const alone = (): NodeStanding => ({
    slot: 0,
    incarnation: 0,
    name: self.name,
    listener: self.listener(),
    since: self.since,
    lastBeatMsAgo: 0,
    leaseLeftMs: null,
    schema: null,
    isAlive: true,
    jobs: ["biller", "janitor", "replayer"],
    isSelf: true,
  });

  return [
    endpoint(
      {
        method: "GET",
        path: "/operator/nodes",
        tag: "Operator",
        summary: "List the servers that share the database",
        description:
          "Each with its place, its name, where it listens and what it does in the background. One that is not `alive` has sent " +
          "no heartbeat for 20 seconds; another takes over its deliveries within seconds, and it leaves the list. `answering` " +
          "marks the server that answers this request. A server on SQLite is the only entry, and `shared` is false: no other can " +
          "join it.",
        access: "operator",
        responses: {
          200: {
            description: "The servers, by place.",
            schema: v.object({ shared: v.boolean(), nodes: v.array(record) }),
            example: { shared: true, nodes: [example] },
          },
        },
      },
      async () => {
        const nodes = isShared ? await lease.nodes() : [alone()];
        return ok({ shared: isShared, nodes: nodes.map(toRecord) });
      },
    ),
  ];
}
