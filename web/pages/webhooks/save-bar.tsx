import type { Webhook } from "../../api/types.ts";
import { Button } from "../../parts/button.tsx";
import { LeavingWebhook } from "../../parts/leaving-webhook.tsx";

/** What is not saved yet, what saving it does, and the two ways out. */
export function SaveBar({
  changes,
  leaving,
  refusal,
  isSaving,
  onDiscard,
}: {
  changes: string;
  leaving: readonly Webhook[];
  /** Why the list was refused, unless a field shows it. */
  refusal: string | null;
  isSaving: boolean;
  onDiscard(): void;
}) {
  return (
    <section class="save-bar" aria-label="Unsaved changes">
      {leaving.map((webhook) => (
        <LeavingWebhook key={webhook.id} webhook={webhook} when="Saving" />
      ))}
      {refusal !== null && (
        <p class="notice bad" role="alert">
          {refusal}
        </p>
      )}
      <div class="line">
        <p>
          <strong>Not saved yet:</strong> {changes}.
        </p>
        <div class="buttons end">
          <Button onClick={onDiscard}>Discard</Button>
          <Button kind="primary" type="submit" busy={isSaving}>
            Save changes
          </Button>
        </div>
      </div>
    </section>
  );
}
