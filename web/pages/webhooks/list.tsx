import { useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import type { Webhook, WebhookHealth } from "../../api/types.ts";
import { changeWebhooks, inboxName, takeInbox } from "../../api/webhooks.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { PlanLink } from "../../parts/plan-link.tsx";
import { say } from "../../parts/said.tsx";
import { Empty } from "../../parts/states.tsx";
import { account } from "../../session/account.ts";
import type { Failing } from "../overview/failing.ts";
import { Card } from "./card.tsx";
import {
  addRow,
  editRow,
  type Fault,
  faultOf,
  findFault,
  findRemoved,
  keptRows,
  leavingWebhooks,
  rebase,
  removeRow,
  toEntries,
  undoRow,
} from "./draft.ts";
import { SaveBar } from "./save-bar.tsx";
import { useDraft } from "./use-draft.ts";

/** Numbers the rows that are not registered yet. */
let added = 0;

/** The list, edited as a whole: nothing changes until it is saved. */
export function WebhookList({
  registered,
  health,
  failing,
  inboxUrl,
  onSaved,
}: {
  registered: readonly Webhook[];
  health: readonly WebhookHealth[];
  failing: readonly Failing[];
  /** Null while it is not known. */
  inboxUrl: string | null;
  onSaved(registered: Webhook[]): void;
}) {
  const { rows, changes, change, discard, isLatest } = useDraft(registered);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<{ message: string; fault: Fault | null } | null>(null);
  const list = useRef<HTMLFormElement>(null);
  const [isSaving, setSaving] = useState(false);
  const limit = account.value?.enforced_webhooks ?? null;
  const kept = keptRows(rows).length;
  const isFull = limit !== null && kept >= limit;
  const hasInbox = inboxUrl !== null && rows.some(({ url, isRemoved }) => url === inboxUrl && !isRemoved);

  function add(url: string, name: string): void {
    added += 1;
    const key = `new-${added}`;
    change(addRow(rows, key, url, name));
    if (url === "") focusOn(`input[name="url-${key}"]`);
  }

  /** After the next render, when the field exists. */
  function focusOn(field: string): void {
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>(field)?.focus());
  }

  async function save(): Promise<void> {
    if (isSaving || changes === "") return;
    setRefused(null);
    setSaving(true);
    let sent = rows;
    try {
      const saved = await changeWebhooks((now) => {
        sent = rebase(rows, now);
        const removed = findRemoved(rows, sent);
        if (removed === null) return toEntries(sent);
        onSaved([...now]);
        throw new ApiError(removed.message, 404, "webhook_not_found", null);
      });
      onSaved(saved);
      // What was changed in the meantime stays.
      if (isLatest()) close();
      say("Webhooks saved.");
    } catch (error) {
      const message = error instanceof ApiError ? error.message : String(error);
      const fault = findRemoved(rows, sent) ?? (error instanceof ApiError ? findFault(error, sent) : null);
      setRefused({ message, fault });
      if (fault) focusOn(`input[name="${fault.field}-${fault.key}"]`);
    } finally {
      setSaving(false);
    }
  }

  async function useInbox(url: string): Promise<void> {
    const saved = await takeInbox(url);
    onSaved(saved);
    if (saved.some((webhook) => webhook.url === url)) say("The inbox is now a webhook.");
  }

  function close(): void {
    discard();
    setOpen(new Set());
    setRefused(null);
    // The bar that had the focus is gone.
    list.current?.focus();
  }

  if (rows.length === 0) {
    return (
      <Empty sentence="No webhooks yet. Events are stored, but not delivered.">
        <div class="buttons">
          <Button changes kind="primary" onClick={() => add("", "")}>
            Add a webhook
          </Button>
          {inboxUrl !== null && (
            <Button changes onClick={() => useInbox(inboxUrl)}>
              Use the inbox
            </Button>
          )}
        </div>
        <p class="small">The inbox is a receiver built into this server, for trying things out.</p>
      </Empty>
    );
  }

  return (
    <form
      ref={list}
      class="webhooks-form"
      tabIndex={-1}
      aria-label="Webhooks"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {rows.map((row) => (
        <Card
          key={row.key}
          row={row}
          health={health.find(({ id }) => id === row.saved?.id)}
          failing={failing.find(({ id }) => id === row.saved?.id && id !== null)}
          isInbox={row.url === inboxUrl}
          isOpen={open.has(row.key)}
          fault={faultOf(refused?.fault ?? null, row)}
          onOpen={() => {
            setOpen(new Set([...open, row.key]));
            focusOn(`input[name="url-${row.key}"]`);
          }}
          onEdit={(edit) => change(editRow(rows, row.key, edit))}
          onRemove={() => change(removeRow(rows, row.key))}
          onUndo={() => {
            change(undoRow(rows, row.key));
            setOpen(new Set([...open].filter((key) => key !== row.key)));
          }}
        />
      ))}
      <div class="webhooks-add">
        <div class="buttons">
          <Button changes onClick={() => add("", "")} disabled={isFull}>
            <Icon name="plus" /> Add a webhook
          </Button>
          {inboxUrl !== null && !hasInbox && (
            <Button changes kind="quiet" onClick={() => add(inboxUrl, inboxName)} disabled={isFull}>
              <Icon name="inbox" /> Add the inbox
            </Button>
          )}
        </div>
        {isFull && (
          <p class="soft small">
            Your account may have {limit === 1 ? "1 webhook" : `${limit} webhooks`}. Remove one first. <PlanLink />
          </p>
        )}
      </div>
      {changes !== "" && (
        <SaveBar
          changes={changes}
          leaving={leavingWebhooks(rows)}
          refusal={refused && !refused.fault ? refused.message : null}
          isSaving={isSaving}
          onDiscard={close}
        />
      )}
    </form>
  );
}
