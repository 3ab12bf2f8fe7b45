import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Dialog } from "../../parts/dialog.tsx";

/** A secret that the server reveals only once. It disappears with the dialog. */
export function ShownOnce({
  title,
  what,
  secret,
  onClose,
}: {
  title: string;
  what: string;
  secret: string;
  onClose(): void;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>Give it to the account's owner now: it is not shown again.</p>
      <p class="buttons">
        <code>{secret}</code>
        <Copy text={secret} what={what} label="Copy" kind="primary" />
      </p>
      <div class="buttons">
        <Button onClick={onClose}>I have it</Button>
      </div>
    </Dialog>
  );
}
