import type { SavedSettings, Webhook } from "../../api/types.ts";
import { toEntry } from "../../api/webhook-entry.ts";

/** The list of webhooks while it is being edited. It is saved as a whole. */
export type Draft = readonly DraftRow[];

export interface DraftRow {
  /** Stays the same while everything else about the row changes. */
  readonly key: string;
  /** As registered; null: not yet registered. */
  readonly saved: Webhook | null;
  readonly url: string;
  readonly name: string;
  readonly isRemoved: boolean;
}

export const toDraft = (registered: readonly Webhook[]): Draft => registered.map(toRow);

const toRow = (saved: Webhook): DraftRow => ({
  key: saved.id,
  saved,
  url: saved.url,
  name: saved.name,
  isRemoved: false,
});

/** @param key names the new row */
export const addRow = (draft: Draft, key: string, url: string, name: string): Draft => [
  ...draft,
  { key, saved: null, url, name, isRemoved: false },
];

export const editRow = (draft: Draft, key: string, edit: Partial<Pick<DraftRow, "url" | "name">>): Draft =>
  draft.map((row) => (row.key === key ? { ...row, ...edit } : row));

/** A registered webhook stays visible until the list is saved; one that was never registered disappears. */
export const removeRow = (draft: Draft, key: string): Draft =>
  draft.flatMap((row) =>
    row.key !== key ? [row] : row.saved === null ? [] : [{ ...toRow(row.saved), isRemoved: true }],
  );

export const undoRow = (draft: Draft, key: string): Draft =>
  draft.map((row) => (row.key === key && row.saved ? toRow(row.saved) : row));

export const keptRows = (draft: Draft): Draft => draft.filter(({ isRemoved }) => !isRemoved);

/**
 * The body of the `PUT`. A URL that stays keeps its settings; a changed one takes them over, except for its headers,
 * whose values only the server knows.
 */
export const toEntries = (draft: Draft): SavedSettings[] =>
  keptRows(draft).map(({ saved, url, name }) => ({
    ...toEntry({ url: url.trim(), name: name.trim() }),
    ...(saved !== null && saved.url !== url.trim() && settingsOf(saved)),
  }));

const settingsOf = ({
  event_types,
  paused,
  rate_limit,
  max_concurrency,
  ordered,
}: Webhook): Partial<SavedSettings> => ({
  ...(event_types !== undefined && { event_types }),
  ...(paused !== undefined && { paused }),
  ...(ordered !== undefined && { ordered }),
  ...(rate_limit !== undefined && { rate_limit }),
  ...(max_concurrency !== undefined && { max_concurrency }),
});

export const isEdited = ({ saved, url, name, isRemoved }: DraftRow): boolean =>
  saved === null || isRemoved || url !== saved.url || name !== saved.name;

/** "1 added, 1 removed"; "" when nothing has changed. */
export function changesInWords(draft: Draft): string {
  const n = (count: (row: DraftRow) => boolean) => draft.filter(count).length;
  const changes = [
    [n(({ saved }) => saved === null), "added"],
    [n(({ isRemoved }) => isRemoved), "removed"],
    [n((row) => row.saved !== null && !row.isRemoved && isEdited(row)), "changed"],
  ] as const;
  return changes.flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`])).join(", ");
}

/** Webhooks whose URL is no longer in the list: deliveries waiting for them fail when it is saved (rules, section 7). */
export function leavingWebhooks(draft: Draft): Webhook[] {
  const staying = new Set(toEntries(draft).map(({ webhook_url }) => webhook_url));
  return draft.flatMap(({ saved }) => (saved !== null && !staying.has(saved.url) ? [saved] : []));
}

/** The draft on top of what is registered by now, because somebody else may have saved the list in the meantime. */
export function rebase(draft: Draft, registered: readonly Webhook[]): Draft {
  const known = new Set(draft.flatMap(({ saved }) => saved?.id ?? []));
  const kept = draft.flatMap((row): DraftRow[] => {
    const saved = registered.find(({ id }) => id === row.saved?.id);
    // Its id stands for its URL, so only the name can be another one.
    if (saved) return [{ ...row, saved, name: row.name === row.saved?.name ? saved.name : row.name }];
    // Saved in the meantime, in this tab or in another.
    if (registered.some(({ url, id }) => url === row.url.trim() && !known.has(id))) return [];
    return row.isRemoved || !isEdited(row) ? [] : [{ ...row, saved: null }];
  });
  return [...kept, ...registered.filter(({ id }) => !known.has(id)).map(toRow)];
}

/** The field that a refusal of the list is about, and what is wrong with it. */
export interface Fault {
  readonly key: string;
  readonly field: "url" | "name";
  /** What the field held when it was refused. */
  readonly refused: string;
  readonly message: string;
}

/** The fault, while it is about this row and what its field still holds. */
export const faultOf = (fault: Fault | null, row: DraftRow): Fault | null =>
  fault !== null && fault.key === row.key && fault.refused === row[fault.field] ? fault : null;

/**
 * The edited row, if any, whose webhook somebody else has removed since the draft was shown: to save it would register the
 * webhook anew.
 */
export function findRemoved(draft: Draft, rebased: Draft): Fault | null {
  const wasSaved = new Set(draft.filter(({ saved }) => saved !== null).map(({ key }) => key));
  const row = rebased.find(({ key, saved }) => saved === null && wasSaved.has(key));
  if (!row) return null;
  const message = "Somebody else has just removed this webhook. Save again to register it anew.";
  return { key: row.key, field: "url", refused: row.url, message };
}

/** The row that a refusal of the list is about: the server names an entry by its position in what was sent. */
export function findFault({ code, message, broken }: Refused, draft: Draft): Fault | null {
  for (const [place, { key, url, name }] of keptRows(draft).entries()) {
    if (broken?.field === `[${place}].name`) {
      return { key, field: "name", refused: name, message: `The name ${broken.rule}.` };
    }
    if (broken?.field !== `[${place}].webhook_url`) continue;
    // Its rule names the other webhook in the API's terms.
    const inWords = code === "duplicate_webhook" ? message : `The URL ${broken.rule}.`;
    return { key, field: "url", refused: url, message: inWords };
  }
  return null;
}

/** The relevant part of an `ApiError`. */
interface Refused {
  readonly code: string;
  readonly message: string;
  readonly broken: { readonly field: string; readonly rule: string } | null;
}
