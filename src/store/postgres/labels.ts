/** Labels of replays are stored as JSON: they may contain U+0000, which a text in PostgreSQL may not. */

/** The whole label of `replay`, with `replay_label` joined. */
export const wholeLabel = "coalesce(replay_label.text, replay.label)";

/** Joins what `wholeLabel` needs. */
export const labelJoins = (tenantKey: string, replayKey: string): string => `
  left join replay on replay.tenant_key = ${tenantKey} and replay.key = ${replayKey}
  left join replay_label on replay_label.tenant_key = ${tenantKey} and replay_label.key = replay.label_key`;

export const labelOf = (stored: string): string => JSON.parse(stored);

/** The form in which it is stored. */
export const labelText = (label: string): string => JSON.stringify(label);
