import "./table.css";
import { Icon } from "../../parts/icon.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Shown } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { usePolled } from "../api/polled.ts";
import { ask } from "../api/session.ts";
import { Behind } from "./behind.tsx";
import { type Listed, type Server, standingOf, summaryOf, workOf } from "./standing.ts";

const everyMs = 3_000;

/** The servers that share the database, as known by the one that responds. */
export function ServersScreen() {
  const polled = usePolled((signal) => ask<Listed>("/operator/nodes", { signal }), everyMs);
  const { data, error } = polled;
  return (
    <>
      <Behind polled={polled} everyMs={everyMs} />
      <PageHead title="Servers" />
      <Shown of={{ ...polled, put: () => {}, error: data ? null : error }}>{(listed) => <Servers of={listed} />}</Shown>
    </>
  );
}

function Servers({ of: { shared, nodes } }: { of: Listed }) {
  const { tone, text } = summaryOf(nodes, shared);
  return (
    <div class="stack">
      <p class={tone === "calm" ? "" : `notice ${tone}`} role="status">
        {text}
      </p>
      <Panel title={shared ? "On this database" : "This server"} isFlush>
        <table class="op-table">
          <thead>
            <tr>
              <th scope="col">Server</th>
              <th scope="col">State</th>
              <th scope="col">Listens on</th>
              <th scope="col">Since</th>
              {shared && <th scope="col">Lease left</th>}
              {shared && <th scope="col">Slot</th>}
              {shared && <th scope="col">Schema</th>}
              <th scope="col">In the background</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node) => (
              <Row key={`${node.slot} ${node.since}`} of={node} shared={shared} />
            ))}
          </tbody>
        </table>
      </Panel>
      {!shared && (
        <p class="soft">
          To add servers, move the data to PostgreSQL with <code>postrider move</code>, and start each with the same{" "}
          <code>POSTRIDER_DATABASE_URL</code> and master key.
        </p>
      )}
    </div>
  );
}

function Row({ of: node, shared }: { of: Server; shared: boolean }) {
  const { tone, icon, words } = standingOf(node);
  return (
    <tr>
      <td>
        <bdi class="op-name">{node.name}</bdi> {node.answering && shared && <span class="badge">answers you</span>}
      </td>
      <td>
        <span class={`state ${tone}`}>
          <Icon name={icon} />
          {words}
        </span>
      </td>
      <td data-name="Listens on">
        <span class="mono">{node.listeners.length === 0 ? "–" : node.listeners.join(", ")}</span>
      </td>
      <td data-name="Since">
        <Time at={node.since} />
      </td>
      {shared && <td data-name="Lease left">{node.lease_left_seconds ?? 0} s</td>}
      {shared && <td data-name="Slot">{node.slot}</td>}
      {shared && <td data-name="Schema">{node.schema}</td>}
      <td data-name="In the background">{workOf(node)}</td>
    </tr>
  );
}
