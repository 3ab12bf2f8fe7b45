import "./overview.css";
import { useRef } from "preact/hooks";
import { showControls } from "../../format/controls.ts";
import { bytes, count } from "../../format/number.ts";
import { duration } from "../../format/time.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { say } from "../../parts/said.tsx";
import { Empty, Shown } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { type Polled, usePolled } from "../api/polled.ts";
import { ask } from "../api/session.ts";
import type { Backups, FailingWebhook, Status } from "../api/types.ts";
import { polledBackupFactOf } from "./backup-fact.ts";
import { Behind } from "./behind.tsx";
import { diskFactOf } from "./disk-fact.ts";
import { addLook, type Look, type Rates, ratesOf } from "./rates.ts";
import { Spark } from "./spark.tsx";
import { Table } from "./table.tsx";

const everyMs = 3_000;
const slowlyMs = 15_000;

/** How the server is doing, and what needs attention. */
export function OverviewScreen() {
  const looks = useRef<readonly Look[]>([]);
  const status = usePolled(async (signal) => {
    const read = await ask<Status>("/operator/status", { signal });
    looks.current = addLook(looks.current, read);
    return read;
  }, everyMs);
  const failing = usePolled(
    (signal) => ask<{ webhooks: FailingWebhook[] }>("/operator/failing-webhooks", { signal }),
    slowlyMs,
  );
  const backups = usePolled((signal) => ask<Backups>("/operator/backups", { signal }), slowlyMs);
  return (
    <>
      <Behind polled={status} everyMs={everyMs} />
      <PageHead title="Overview" />
      <div class="stack">
        <Shown of={{ ...status, put: () => {}, error: status.data ? null : status.error }}>
          {(read) => (
            <>
              <Paused what={read.paused} onResumed={status.reload} />
              <Figures of={read} rates={ratesOf(looks.current)} />
              <Storage of={read} backups={backups} />
            </>
          )}
        </Shown>
        <Panel title="Failing webhooks" isFlush>
          <Shown
            of={{ ...failing, put: () => {}, error: failing.data ? null : failing.error }}
            isEmpty={({ webhooks }) => webhooks.length === 0}
            empty={<Empty sentence="No webhook has been failing for a minute or more." />}
          >
            {({ webhooks }) => <Failing webhooks={webhooks} />}
          </Shown>
        </Panel>
      </div>
    </>
  );
}

function Paused({ what, onResumed }: { what: Status["paused"]; onResumed(): void }) {
  if (what.length === 0) return null;
  const resume = async () => {
    await ask("/operator/resume", { method: "POST", body: { what } });
    say(`Resumed: ${what.join(" and ")}.`);
    onResumed();
  };
  return (
    <p class="notice wait paused" role="status">
      <span>
        Paused: {what.join(" and ")}. Events are still accepted. Look at the data first if this server was restored from
        a backup.
      </span>
      <Button onClick={resume}>Resume {what.join(" and ")}</Button>
    </p>
  );
}

function Figures({ of: { queue, since_start, started_at }, rates }: { of: Status; rates: Rates }) {
  const late = queue?.oldest_due_seconds ?? 0;
  return (
    <dl class="op-figures">
      <div>
        <dt>Events a second</dt>
        <dd>
          <strong>{rate(rates.events)}</strong>
          <Spark values={rates.eventsOverTime} name="Events a second" />
        </dd>
      </div>
      <div>
        <dt>Delivered a second</dt>
        <dd>
          <strong>{rate(rates.delivered)}</strong>
          <Spark values={rates.deliveredOverTime} name="Delivered a second" />
        </dd>
      </div>
      <div>
        <dt>Waiting</dt>
        <dd>
          <strong>{queue ? count(queue.waiting) : "–"}</strong>
          <span class={`more ${late > 60 ? "failed" : ""}`}>
            {queue === null
              ? "the database did not say in time"
              : late >= 1
                ? `one is ${duration(late * 1000)} late`
                : `${count(queue.in_flight)} in flight, none late`}
          </span>
        </dd>
      </div>
      <div>
        <dt>Since the start</dt>
        <dd>
          <strong>{count(since_start.events)}</strong>
          <span class="more">
            events; attempts: {count(since_start.delivered)} delivered, {count(since_start.retried)} to be repeated,{" "}
            {count(since_start.failed)} failed; started <Time at={started_at} />
          </span>
        </dd>
      </div>
    </dl>
  );
}

const rate = (perSecond: number | null) =>
  perSecond === null ? "–" : perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));

function Storage({
  of: { storage, memory_bytes, version, commit, open_streams },
  backups,
}: {
  of: Status;
  backups: Polled<Backups>;
}) {
  const disk = diskFactOf(storage);
  return (
    <Panel title="Storage and machine">
      <dl class="op-facts">
        <dt>Database</dt>
        <dd>
          {bytes(storage.database_bytes)}, its log {bytes(storage.log_bytes)}
        </dd>
        <dt>Disk</dt>
        <dd class={disk.isBad ? "failed" : ""}>{disk.text}</dd>
        <dt>Memory</dt>
        <dd>
          {bytes(memory_bytes)}, {count(open_streams)} open streams
        </dd>
        <dt>Backup</dt>
        <dd>
          <BackupRow of={backups} />
        </dd>
        <dt>Version</dt>
        <dd>
          {version} <span class="soft mono">{commit}</span>
        </dd>
      </dl>
    </Panel>
  );
}

function BackupRow({ of }: { of: Polled<Backups> }) {
  const fact = polledBackupFactOf(of);
  if (fact === null) return "…";
  const { text, at, verifiedAt, isBad } = fact;
  return (
    <a href="#backups" class={isBad ? "failed" : ""}>
      {text} {at && <Time at={at} />}
      {verifiedAt && (
        <>
          , verified <Time at={verifiedAt} />
        </>
      )}
    </a>
  );
}

function Failing({ webhooks }: { webhooks: readonly FailingWebhook[] }) {
  return (
    <Table columns={["Webhook", "Account", "State", "Failing since"]}>
      {webhooks.map((webhook) => (
        <tr key={webhook.webhook_id}>
          <td>
            <bdi class="op-name">{showControls(webhook.name || webhook.url)}</bdi>{" "}
            {webhook.name && <bdi class="soft mono">{showControls(webhook.url)}</bdi>}
          </td>
          <td data-name="Account">
            <a href={`#accounts/${webhook.tenant_id}`}>
              <bdi>{showControls(webhook.tenant_name)}</bdi>
            </a>
          </td>
          <td data-name="State">
            <span class={`state ${webhook.disabled_at ? "failed" : "waiting"}`}>
              <Icon name={webhook.disabled_at ? "cross" : "warn"} />
              {webhook.disabled_at ? "disabled" : "failing"}
            </span>
          </td>
          <td data-name="Since">
            <Time at={webhook.failing_since} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
