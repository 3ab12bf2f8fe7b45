import { bytes } from "../../format/number.ts";
import { duration } from "../../format/time.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { say } from "../../parts/said.tsx";
import { Empty, Shown } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { usePolled } from "../api/polled.ts";
import { ask } from "../api/session.ts";
import type { Backups } from "../api/types.ts";
import { failureOf } from "./backup-fact.ts";
import { Behind } from "./behind.tsx";
import { Table } from "./table.tsx";

const everyMs = 3_000;

/** What could be restored, when the next backup is made, and how the latest run ended. */
export function BackupsScreen() {
  const polled = usePolled((signal) => ask<Backups>("/operator/backups", { signal }), everyMs);
  const { data } = polled;
  const begin = async () => {
    await ask("/operator/backups", { method: "POST" });
    say("The backup has begun.");
    polled.reload();
  };
  return (
    <>
      <Behind polled={polled} everyMs={everyMs} />
      <PageHead title="Backups">
        {data?.place && (
          <div class="end">
            <Button kind="primary" onClick={begin} busy={data.under_way !== null}>
              Back up now
            </Button>
          </div>
        )}
      </PageHead>
      <Shown of={{ ...polled, put: () => {}, error: data ? null : polled.error }}>
        {(backups) => (backups.place === null ? <NotSetUp /> : <List of={backups} onChange={polled.reload} />)}
      </Shown>
    </>
  );
}

const NotSetUp = () => (
  <Panel title="Backups">
    <Empty sentence="This server does not know where to keep backups.">
      <p class="soft">
        Set <code>POSTRIDER_BACKUP_URL</code> to a folder or <code>s3://bucket/prefix</code>, and{" "}
        <code>POSTRIDER_BACKUP_CRON</code> to <code>0 3 * * *</code> for one each night. <code>postrider backup</code>{" "}
        makes one by hand.
      </p>
    </Empty>
  </Panel>
);

function List({ of, onChange }: { of: Backups; onChange(): void }) {
  const { place, schedule, keep, next_at, under_way, latest, backups } = of;
  const failure = failureOf(of);
  return (
    <div class="stack">
      {under_way !== null && (
        <p class="notice" role="status">
          {under_way === "backup" ? "A backup is being made and verified." : "A backup is being verified."}
        </p>
      )}
      {failure && (
        <p class="notice bad" role="alert">
          {failure.kind === "backup" ? "The latest backup failed" : "The latest verification failed"}{" "}
          <Time at={failure.at} />: {failure.error}
        </p>
      )}
      <Panel title="Schedule">
        <dl class="op-facts">
          <dt>Kept in</dt>
          <dd class="mono">{place}</dd>
          <dt>Schedule</dt>
          <dd>{schedule === null ? "none: only by hand" : <code>{schedule}</code>}</dd>
          <dt>Next</dt>
          <dd>{next_at === null ? "–" : <Time at={next_at} />}</dd>
          <dt>Kept</dt>
          <dd>{keep === null ? "all" : `the latest ${keep}`}</dd>
          <dt>Latest</dt>
          <dd>
            {latest === null ? (
              "none since this was set up"
            ) : (
              <>
                <Time at={latest.at} />, {duration(latest.took_ms)}
                {latest.bytes !== null && `, ${bytes(latest.bytes)}`}
              </>
            )}
          </dd>
        </dl>
      </Panel>
      <Panel title="Backups" isFlush>
        {backups.length === 0 ? (
          <Empty sentence="There is none yet." />
        ) : (
          <Table columns={["Backup", "Made", "Size", "Verified", ""]}>
            {backups.map((backup) => (
              <tr key={backup.name}>
                <td>
                  <span class="mono">{backup.name}</span>
                </td>
                <td data-name="Made">
                  <Time at={backup.created_at} />
                </td>
                <td data-name="Size">{bytes(backup.bytes)}</td>
                <td data-name="Verified">
                  <Verified is={backup.verified} />
                </td>
                <td>
                  {/* The server cannot open one that is encrypted. */}
                  {!backup.name.endsWith(".age") && (
                    <Button
                      busy={under_way !== null}
                      aria-label={`Verify ${backup.name}`}
                      onClick={async () => {
                        await ask(`/operator/backups/${encodeURIComponent(backup.name)}/verify`, { method: "POST" });
                        say("The verification has begun.");
                        onChange();
                      }}
                    >
                      Verify
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Panel>
    </div>
  );
}

function Verified({ is }: { is: boolean | null }) {
  if (is === null) return <span class="soft">not looked at</span>;
  return (
    <span class={`state ${is ? "delivered" : "failed"}`}>
      <Icon name={is ? "check" : "cross"} />
      {is ? "restores" : "does not restore"}
    </span>
  );
}
