import type { WebhookHealth } from "../../api/types.ts";
import { isolated } from "../../format/controls.ts";
import { withoutQuery } from "../../format/shorten.ts";
import { AttemptButton } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Field } from "../../parts/field.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/states.tsx";
import type { Failing } from "../overview/failing.ts";
import { type DraftRow, type Fault, isEdited } from "./draft.ts";
import { Health } from "./health.tsx";
import { FailingBadge, StateBadge } from "./state-badge.tsx";
import { TestAnswer, useTestEvent } from "./test-event.tsx";

export interface CardProps {
  row: DraftRow;
  /** Undefined: it is being read, or could not be. */
  health: WebhookHealth | undefined;
  /** What fails at it; undefined: nothing, or it is not known. */
  failing: Failing | undefined;
  /** Whether it is the account's inbox. */
  isInbox: boolean;
  isOpen: boolean;
  fault: Fault | null;
  onOpen(): void;
  onEdit(edit: { url?: string; name?: string }): void;
  onRemove(): void;
  onUndo(): void;
}

/** One webhook: what it is and how it is doing, or the fields in which it is edited. */
export function Card(props: CardProps) {
  const { row } = props;
  if (row.isRemoved) return <Removed {...props} />;
  if (row.saved === null || props.isOpen || isEdited(row)) return <Fields {...props} />;
  return <Registered {...props} saved={row.saved} />;
}

function Registered({
  saved,
  health,
  failing,
  isInbox,
  onOpen,
  onRemove,
}: CardProps & { saved: NonNullable<DraftRow["saved"]> }) {
  const test = useTestEvent(saved);
  const called = isolated(saved.name || withoutQuery(saved.url));
  return (
    <article class="webhook" aria-label={called}>
      <div class="head">
        <div class="what">
          {saved.name !== "" && (
            <h3>
              <a href={`/webhooks/${saved.id}`}>{called}</a>
            </h3>
          )}
          <p class="url">
            <StateBadge webhook={saved} />
            {saved.state === "active" && <FailingBadge failing={failing} />}
            <code>{withoutQuery(saved.url)}</code>
            <Copy text={saved.url} what="the URL" />
          </p>
        </div>
        <div class="buttons">
          <AttemptButton of={test.attempt} kind="plain">
            Send a test event
          </AttemptButton>
          <Button changes onClick={onOpen} aria-label={`Edit ${called}`}>
            Edit
          </Button>
          <Button changes kind="quiet" onClick={onRemove} aria-label={`Remove ${called}`} title="Remove">
            <Icon name="trash" />
          </Button>
        </div>
      </div>
      <TestAnswer of={test} />
      {health ? <Health health={health} failing={failing} /> : <Skeleton width="60%" height="8px" />}
      <div class="buttons links">
        <a href={`/webhooks/${saved.id}`}>Settings and health</a>
        <a href={`/events?webhook=${encodeURIComponent(saved.id)}`}>See its events</a>
        {isInbox && <a href="/inbox">Open the inbox</a>}
      </div>
    </article>
  );
}

function Fields({ row, fault, onEdit, onRemove, onUndo }: CardProps) {
  const wrong = (field: Fault["field"]) => (fault?.field === field ? fault.message : null);
  return (
    <fieldset class="webhook edited">
      <legend>{row.saved === null ? "New webhook" : "Edit the webhook"}</legend>
      <div class="fields">
        <Field
          label="URL"
          name={`url-${row.key}`}
          value={row.url}
          onType={(url) => onEdit({ url })}
          placeholder="https://example.com/hooks"
          hint="An https URL with a public host. A local server accepts http://localhost too."
          autocomplete="off"
          wrong={wrong("url")}
        />
        <Field
          label="Name"
          name={`name-${row.key}`}
          value={row.name}
          onType={(name) => onEdit({ name })}
          hint="Optional, only for you."
          autocomplete="off"
          wrong={wrong("name")}
        />
      </div>
      <div class="buttons">
        {row.saved === null ? (
          <Button kind="quiet" onClick={onRemove}>
            <Icon name="trash" /> Remove
          </Button>
        ) : (
          <Button kind="quiet" onClick={onUndo}>
            {isEdited(row) ? "Undo" : "Close"}
          </Button>
        )}
        {row.saved !== null && row.url.trim() !== row.saved.url && (
          <p class="soft small breaks">
            A new URL makes a new webhook: <code>{withoutQuery(row.saved.url)}</code> is removed.
            {row.saved.headers && " Its headers have to be entered again."}
          </p>
        )}
      </div>
    </fieldset>
  );
}

function Removed({ row, onUndo }: CardProps) {
  return (
    <div class="webhook removed">
      <div class="head">
        <p class="what">
          <del>{withoutQuery(row.name !== "" ? `${isolated(row.name)} · ${row.url}` : row.url)}</del>
          <span class="soft small">Removed when you save.</span>
        </p>
        <Button onClick={onUndo} aria-label={`Undo, keep ${isolated(row.name || row.url)}`}>
          Undo
        </Button>
      </div>
    </div>
  );
}

export const CardSkeleton = () => (
  <div class="webhook" aria-hidden="true">
    <Skeleton width="20%" height="16px" />
    <Skeleton width="56%" />
    <Skeleton width="100%" height="8px" />
    <Skeleton width="40%" />
  </div>
);
