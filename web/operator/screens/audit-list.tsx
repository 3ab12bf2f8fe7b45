import { useState } from "preact/hooks";
import { showControls } from "../../format/controls.ts";
import { Empty, Shown } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { useLoaded } from "../../stream/load.ts";
import { ask } from "../api/session.ts";
import type { AuditEntry, AuditPage } from "../api/types.ts";
import { Pager } from "./pager.tsx";
import { Table } from "./table.tsx";

const perPage = 50;
const shortPage = 10;

/** Who did what, and from where; for one account or for all. */
export function AuditList({
  tenant,
  action,
  isShort = false,
}: {
  tenant?: string | undefined;
  action?: string | undefined;
  /** Only the latest entries. */
  isShort?: boolean;
}) {
  const [page, setPage] = useState(0);
  const size = isShort ? shortPage : perPage;
  const list = useLoaded(`audit ${tenant} ${action} ${page}`, (signal) =>
    ask<AuditPage>("/operator/audit", { signal, query: { tenant, action, page, size } }),
  );
  return (
    <Shown of={list} isEmpty={({ entries }) => entries.length === 0} empty={<Empty sentence="Nothing was done." />}>
      {({ entries, total, total_is_exact: isExact }) => (
        <>
          <Table columns={["What", ...(tenant === undefined ? ["Account"] : []), "Who", "From", "When"]}>
            {entries.map((entry) => (
              <tr key={`${entry.at} ${entry.action} ${entry.tenant_id} ${entry.address}`}>
                <td>
                  <span class="op-name">{entry.action}</span>{" "}
                  {entry.times > 1 && <span class="badge">{entry.times} times</span>}{" "}
                  <bdi class="soft">{showControls(detailText(entry))}</bdi>
                </td>
                {tenant === undefined && (
                  <td data-name="Account">
                    {entry.tenant_id === null ? (
                      "the server"
                    ) : (
                      <a href={`#accounts/${entry.tenant_id}`}>{entry.tenant_id}</a>
                    )}
                  </td>
                )}
                <td data-name="Who">
                  {entry.by}
                  {entry.via !== null && entry.via !== entry.by && `, ${entry.via}`}
                </td>
                <td data-name="From">
                  <span class="mono">{entry.address ?? "–"}</span>
                </td>
                <td data-name="When">
                  <Time at={entry.last_at} />
                </td>
              </tr>
            ))}
          </Table>
          {!isShort && <Pager page={page} total={total} isExact={isExact} perPage={size} onTurn={setPage} />}
        </>
      )}
    </Shown>
  );
}

/** `reason: Sends spam.` */
const detailText = ({ detail }: AuditEntry) =>
  Object.entries(detail)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${Array.isArray(value) ? value.join(", ") : value}`)
    .join("; ");
